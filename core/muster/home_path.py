"""Paths in the settings."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator


def _at_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("begins with ~, but there is no home directory here; use an absolute path") from None


HomePath = Annotated[Path, AfterValidator(_at_home)]
"""A path in which a leading ~ stands for the home directory, as in a shell."""
