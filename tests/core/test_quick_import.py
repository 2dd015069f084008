"""What rests while modules are imported, and only then."""

import gc
import importlib.util
import sys

import pytest

from muster.quick_import import absent, quick_import


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


def test_an_absent_package_cannot_be_imported_and_can_be_afterwards():
    """Even if the import fails."""
    with pytest.raises(ModuleNotFoundError), absent("this"):
        import this  # noqa: F401, PLC0415 (prints when imported; here it is not)
    assert importlib.util.find_spec("this") is not None


def test_a_loaded_package_stays():
    """Others hold it already, so hiding it would save nothing."""
    with absent("json"):
        assert sys.modules["json"] is not None
