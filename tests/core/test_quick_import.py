"""The garbage collector rests while modules are imported, and only then."""

import gc

import pytest

from muster.quick_import import quick_import


def test_the_collector_works_again_after_an_import_that_fails():
    """Off in between."""
    with pytest.raises(ImportError), quick_import():
        assert not gc.isenabled()
        raise ImportError("no such module")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    """Whoever has switched it off wants it off."""
    gc.disable()
    try:
        with quick_import():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
