"""Which rows of the policy in effect can do anything, as far as the installed checks tell."""

import pytest

from muster import plugins
from muster.config import Config, Settings
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy import shadowed, takes_nothing_out
from muster_coordinator.runtime.settings.policy_file import shipped_rows

CHECKS = plugins.collect_checks(plugins.load(Config(Settings())))
STAY = Row(name="stay", codes=("*",), service="IN_SERVICE", reason="ours")
GEMM = Row(name="gemm", codes=("gemm.slow",), reason="slow")


@pytest.mark.parametrize(
    ("rows", "nothing"),
    [
        ((), True),
        ((STAY,), True),
        ((STAY, GEMM), True),
        ((GEMM, STAY), False),
        ((STAY, GEMM.model_copy(update={"severity": "WARNING"})), False),
        (shipped_rows(), False),
        ((STAY, *shipped_rows()), True),
    ],
)
def test_a_policy_that_takes_nothing_out(rows, nothing):
    """One without rows that take nodes out, or all of whose such rows are behind one that takes all they match."""
    assert takes_nothing_out(Policy(rows), CHECKS) is nothing


def test_of_rows_about_unknown_checks_nothing_is_claimed():
    """Agents may have plugins that the coordinator lacks, or one has failed to load here."""
    other = Row(name="other", codes=("ours.bad",), reason="bad")
    assert shadowed(Policy((STAY, other)), CHECKS) == {}
    assert shadowed(Policy((STAY, GEMM)), None) == {}
    assert not takes_nothing_out(Policy((STAY, other)), CHECKS)
    assert not takes_nothing_out(Policy((STAY, GEMM)), None)
    assert takes_nothing_out(Policy((STAY,)), None)
