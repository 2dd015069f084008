"""Python's search for cyclic garbage, and when there is nothing to find."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Keeps the garbage collector off while modules are imported or what is stored is read.

    Nothing that these make is garbage, but they make so many objects that Python would look through all of them again
    and again: that is an eighth of the time in which the coordinator starts, and a sixth of that in which it reads what
    is stored about 10,000 nodes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
