"""Importing without looking for garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
