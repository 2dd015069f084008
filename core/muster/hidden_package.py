"""Importing less than a library would."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def absent(package: str) -> Iterator[None]:
    """Makes an installed package look absent to the modules that are imported meanwhile, unless it is loaded already.

    For libraries that load what they find, used or not, and have no setting for it.
    """
    if package in sys.modules:
        yield
        return
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules[package] = None  # the import system's own mark for "cannot be imported"
    try:
        yield
    finally:
        del modules[package]
