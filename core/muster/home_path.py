"""Paths in the settings."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator


def _at_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("has a ~ that stands for no home directory here") from None


HomePath = Annotated[Path, AfterValidator(_at_home)]
"""A path in which a leading ~ stands for the home directory, as in a shell."""
