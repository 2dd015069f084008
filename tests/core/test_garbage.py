"""When Python does not look for garbage, and that it does so again afterwards."""

import gc

import pytest

from muster.garbage import no_collection


def test_the_collector_works_again_after_an_import_that_fails():
    """Off in between."""
    with pytest.raises(ImportError), no_collection():
        assert not gc.isenabled()
        raise ImportError("no such module")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    """Whoever has switched it off wants it off."""
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
