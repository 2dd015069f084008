"""The tables of XIDs and SXids."""

import tomllib
from importlib import resources

import pytest
from tests.cases import cases

from muster_plugins.shared.xids import catalogue, meaning, switch_catalogue, switch_meaning


@pytest.mark.parametrize(("kind", "rows"), [("xid", catalogue()), ("sxid", switch_catalogue())])
def test_every_code_has_one_row(kind, rows):
    """A second row for a code would silently replace the first."""
    written = tomllib.loads(resources.files("muster_plugins.shared").joinpath(f"{kind}s.toml").read_text())[kind]
    assert [row["code"] for row in written] == list(rows)


def test_every_published_xid_has_a_row():
    """NVIDIA's catalogue has numbered them up to 172 without a gap."""
    assert set(catalogue()) == set(range(1, 173))


@cases("code", [48, 62, 74, 79, 92, 95, 119, 120, 140])
def test_fatal_xids_are_errors(code):
    """These take a GPU out of use."""
    assert meaning(code).severity == "ERROR"


@pytest.mark.parametrize("code", [13, 31, 43, 45])
def test_the_applications_xids_point_to_the_application(code):
    """These say nothing about the hardware."""
    assert (meaning(code).severity, meaning(code).action) == ("INFO", "CHECK_APPLICATION")


@pytest.mark.parametrize(("severity", "action"), [("ERROR", "NONE"), ("ERROR", "CHECK_APPLICATION")])
def test_an_error_asks_for_something(severity, action):
    """Who is taken out of use must learn how to come back."""
    rows = [*catalogue().values(), *switch_catalogue().values()]
    assert not [row.code for row in rows if (row.severity, row.action) == (severity, action)]


def test_an_xid_without_a_row_is_a_warning():
    """What nobody has judged is neither harmless nor fatal."""
    assert (meaning(9999).code, meaning(9999).severity) == (9999, "WARNING")


@cases(
    ("code", "line", "severity", "action"),
    [
        (149, "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09", "ERROR", "RESET_GPU"),
        (149, "149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03", "WARNING", "NONE"),
        (154, "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "ERROR", "REBOOT_NODE"),
        (154, "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "ERROR", "RESET_GPU"),
        (154, "154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "ERROR", "RESET_GPU"),
        (154, "154, GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)", "INFO", "NONE"),
        (154, "154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)", "ERROR", "REBOOT_NODE"),
        (154, "154, GPU recovery action changed from 0x2 (OS Reboot) to 0x1 (GPU Reset)", "ERROR", "RESET_GPU"),
        (154, "154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", "WARNING", "RESET_GPU"),
        (154, "154, GPU recovery action changed from 0x0 (None) to 0x5 (Recover IMEX Domain)", "WARNING", "NONE"),
        (154, "", "INFO", "NONE"),
        (79, "79, Fatal to the application", "ERROR", "REBOOT_NODE"),
    ],
)
def test_the_rest_of_a_line_can_say_more(code, line, severity, action):
    """Only where the row asks for it."""
    row = meaning(code, line)
    assert (row.severity, row.action) == (severity, action)


@pytest.mark.parametrize(
    ("code", "line", "severity"),
    [
        (12020, "12020, Fatal, Link 1", "ERROR"),
        (20001, "20001, Non-fatal, Link 1", "INFO"),
        (99999, "99999, Fatal, Link 1", "ERROR"),
        (99999, "99999, Non-fatal, Link 1", "WARNING"),
    ],
)
def test_an_sxid_weighs_what_its_row_or_else_the_driver_says(code, line, severity):
    """Always fatal, harmless, and two that nobody has a row for."""
    assert switch_meaning(code, line).severity == severity
