"""Libraries that stand between a program and the system, written in C beside this file."""

import subprocess
from pathlib import Path


def built(name: str, directory: Path) -> Path:
    """The library of this name, which a program needs in LD_PRELOAD."""
    library = directory / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source], check=True)
    return library
