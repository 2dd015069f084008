"""Paths in the settings."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator


def _named(value: Any) -> Any:
    """Refuses an empty text, such as that of a variable without a value: it would name the directory we are in."""
    if value == "":
        raise ValueError("must be a path; leave it out, or unset the variable, to use the default")
    return value


def _at_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("has a ~ that stands for no home directory here") from None


HomePath = Annotated[Path, BeforeValidator(_named), AfterValidator(_at_home)]
"""A path in which a leading ~ stands for the home directory, as in a shell."""
