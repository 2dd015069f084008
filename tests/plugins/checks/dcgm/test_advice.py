"""What the catalogue says about problems that DCGM reports."""

from tests.cases import cases

from muster_plugins.checks.dcgm.advice import UNLISTED, advice


@cases(
    ("text", "error_severity", "severity", "action"),
    [
        ("anything", 1, "WARNING", "NONE"),
        ("anything", 2, "ERROR", "INSPECT_HARDWARE"),
        ("anything", 6, "ERROR", "RESET_GPU"),
        ("run a Field Diagnostic", 5, "WARNING", "NONE"),
        ("run a Field Diagnostic", 3, "ERROR", "INSPECT_HARDWARE"),
        ("Monitor - this GPU can still perform workload.", None, "WARNING", "NONE"),
        ("Drain the GPU and reset it or reboot the node.", None, "ERROR", "RESET_GPU"),
        ("Ensure Fabric Manager is running.", None, "ERROR", "REBOOT_NODE"),
    ],
)
def test_severity_goes_before_words(text, error_severity, severity, action):
    """A known severity of DCGM decides; otherwise the words of its text do."""
    row = advice(text, error_severity)
    assert (row.severity, row.action) == (severity, action)
    assert row.source


def test_an_unknown_problem_is_to_be_inspected():
    """An unknown severity of a later DCGM is not read as harmless."""
    assert advice("something new", 99) is UNLISTED
    assert (UNLISTED.severity, UNLISTED.action) == ("ERROR", "INSPECT_HARDWARE")
