"""Importing less, and without looking for garbage."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def quick_import() -> Iterator[None]:
    """Keeps the garbage collector off while modules are imported.

    Nothing that they make is garbage, but they make so many objects that Python would look through all of them again
    and again: that is an eighth of the time in which the coordinator starts.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


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
