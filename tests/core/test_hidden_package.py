"""A package that looks absent while a module is imported, and only then."""

import importlib.util
import sys

import pytest

from muster.hidden_package import absent


def test_an_absent_package_cannot_be_imported_and_can_be_afterwards():
    """Even if the import fails."""
    with pytest.raises(ModuleNotFoundError), absent("this"):
        import this  # noqa: F401, PLC0415 (prints when imported; here it is not)
    assert importlib.util.find_spec("this") is not None


def test_a_loaded_package_stays():
    """Others hold it already, so hiding it would save nothing."""
    with absent("json"):
        assert sys.modules["json"] is not None
