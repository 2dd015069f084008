"""What `make images` and `make hosts` need from Debian's mirror and from the package index. Both keep it in .cache."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def path() -> str:
    """PATH with the directories of root's programs."""
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def run(*command: str | Path) -> str:
    """What a program prints; what it complains about, if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path()})
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def release() -> str:
    """The name of this machine's release of Debian."""
    (name,) = re.findall(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE)
    return str(name)


def debootstrap(system: Path, *packages: str, suite: str | None = None) -> None:
    """Makes a file system with Debian's smallest system and these packages: this machine's release or another suite."""
    targets = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Release: {release()}")
    include = f"--include={','.join(packages)}"
    run("debootstrap", "--variant=minbase", include, suite or release(), system, targets.split()[0])
    for downloaded in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(system / downloaded)


def copy_checkout(target: Path) -> Path:
    """Copies the files of this checkout, with changes that are not committed."""
    for name in run("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


def build_wheel(source: Path, directory: Path) -> Path:
    """A wheel of muster from a checkout."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (built,) = directory.glob("gpu_muster-*.whl")
    return built


def pinned_wheels(cache: Path, python: str, extras: str, *more: str) -> Path:
    """A directory with the pinned packages that muster needs with these extras on that Python, and `more` of them."""
    wanted = [(ROOT / name).read_bytes() for name in ("constraints.txt", "pyproject.toml")]
    digest = hashlib.sha256(b"".join([*wanted, repr((python, extras, more)).encode()])).hexdigest()
    directory = cache / f"wheels-{digest[:12]}"
    if not directory.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            built = build_wheel(ROOT, Path(scratch))
            run(
                *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"),
                *(f"--python-version={python}", f"--constraint={ROOT}/constraints.txt"),
                *(f"--dest={scratch}/wheels", *more, f"{built}[{extras}]"),
            )
            (Path(scratch) / "wheels" / built.name).unlink()
            (Path(scratch) / "wheels").rename(directory)
    return directory
