"""The table of XIDs."""

import tomllib
from importlib import resources

import pytest

from muster_plugins.xids import catalogue, meaning


def test_every_xid_has_one_row():
    """A second row for a code would silently replace the first."""
    rows = tomllib.loads(resources.files("muster_plugins").joinpath("xids.toml").read_text())["xid"]
    assert len(rows) == len(catalogue())


@pytest.mark.parametrize("code", [48, 74, 79, 92, 95, 119, 120, 140])
def test_fatal_xids_are_errors(code):
    """These take a GPU out of use."""
    assert meaning(code).severity == "ERROR"


@pytest.mark.parametrize("code", [13, 31, 45])
def test_the_applications_xids_accuse_the_application(code):
    """These say nothing about the hardware."""
    assert (meaning(code).severity, meaning(code).action) == ("INFO", "CHECK_APPLICATION")


def test_an_xid_without_a_row_is_a_warning():
    """What nobody has judged is neither harmless nor fatal."""
    assert meaning(9999).severity == "WARNING"
