"""What rows match, what they ask for, and when time alone changes it."""

import pytest
from tests.cases import cases

from muster.model import Action, Severity
from muster_coordinator.model.findings import Proof, StandingFinding
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.policy import Policy

NOW = 10_000.0


def charge(**said):
    usual = {
        "check": "gemm",
        "code": "gemm.slow",
        "device": 0,
        "severity": Severity.ERROR,
        "action": Action.RESET_GPU,
        "summary": "slow",
        "since": NOW - 60,
        "seen": NOW,
        "run": "r1",
        "proof": Proof.TWICE,
    }
    return StandingFinding(**{**usual, **said})


def row(**said):
    return Row(**{"name": "slow", "codes": ("gemm.slow",), "reason": "it is slow", **said})


def demand(rows, *charges, sightings=None, now=NOW):
    return Policy((rows,) if isinstance(rows, Row) else tuple(rows)).evaluate(charges, sightings or {}, now).requirement


@cases(
    ("said", "found", "expected"),
    [
        pytest.param({}, {}, True, id="the same code"),
        pytest.param({"codes": ("*.slow",)}, {}, True, id="a pattern"),
        pytest.param({"codes": ("nvml.xid", "gemm.*")}, {}, True, id="any of several codes"),
        pytest.param({"codes": ("gemm.corrupt",)}, {}, False, id="another code"),
        pytest.param({"codes": ("Gemm.slow",)}, {}, False, id="upper and lower case differ"),
        pytest.param({"checks": ("memory",)}, {}, False, id="another check"),
        pytest.param({"checks": ("ge*",)}, {}, True, id="a pattern of the check"),
        pytest.param({}, {"severity": Severity.WARNING}, False, id="only a warning"),
        pytest.param({"severity": "WARNING"}, {"severity": Severity.WARNING}, True, id="warnings as well"),
        pytest.param({"severity": "WARNING"}, {}, True, id="errors where warnings do"),
        pytest.param({"severity": "WARNING"}, {"severity": Severity.UNKNOWN}, False, id="never what is unknown"),
        pytest.param({"when": {"xid": [79, 119]}}, {"evidence": {"xid": 79}}, True, id="a condition that is met"),
        pytest.param({"when": {"xid": 79}}, {"evidence": {"xid": 31}}, False, id="a condition that is not met"),
        pytest.param({"when": {"xid": 79}}, {}, False, id="a condition on what nobody told"),
    ],
)
def test_which_findings_a_row_is_about(said, found, expected):
    """Code, check, severity and the conditions on the evidence must all fit."""
    assert row(**said).matches(charge(**found)) is expected


@cases(
    ("wanted", "given", "expected"),
    [
        (Proof.ONCE, Proof.ONCE, "proven"),
        (Proof.ONCE, Proof.TWICE, "proven"),
        (Proof.ONCE, Proof.LOCALISED, "proven"),
        (Proof.ONCE, Proof.COMPARED, "nothing"),
        (Proof.TWICE, Proof.ONCE, "unproven"),
        (Proof.TWICE, Proof.TWICE, "proven"),
        (Proof.TWICE, Proof.LOCALISED, "proven"),
        (Proof.TWICE, Proof.COMPARED, "nothing"),
        (Proof.LOCALISED, Proof.ONCE, "nothing"),
        (Proof.LOCALISED, Proof.TWICE, "nothing"),
        (Proof.LOCALISED, Proof.LOCALISED, "proven"),
        (Proof.LOCALISED, Proof.COMPARED, "nothing"),
        (Proof.COMPARED, Proof.ONCE, "nothing"),
        (Proof.COMPARED, Proof.TWICE, "nothing"),
        (Proof.COMPARED, Proof.LOCALISED, "nothing"),
        (Proof.COMPARED, Proof.COMPARED, "proven"),
    ],
)
def test_how_well_founded_a_charge_must_be(wanted, given, expected):
    """A conviction counts more than a second run; comparing counts only where a row asks for it."""
    found = demand(row(proof=wanted), charge(proof=given))
    assert ("nothing" if found is None else "proven" if found.is_proven else "unproven") == expected


def test_what_a_demand_tells():
    """It carries the row's name, urgency and reason, the code, and what the finding says should be done."""
    found = demand(row(urgency=70), charge())
    assert found is not None
    assert (found.row, found.codes, found.cause, found.action) == (
        "slow",
        ("gemm.slow",),
        "gemm.slow",
        Action.RESET_GPU,
    )
    assert (found.urgency, found.reason, found.unproven) == (70, "it is slow", ())


def test_a_row_may_say_what_to_do():
    """The action of a row goes before that of the finding."""
    found = demand(row(action=Action.REPLACE), charge())
    assert found is not None
    assert found.action is Action.REPLACE


def test_what_is_not_proven_names_the_checks_that_must_find_it_again():
    """Each check is named once, whatever it has found."""
    rows = row(codes=("*",))
    found = demand(
        rows,
        charge(proof=Proof.ONCE, check="memory", code="memory.slow"),
        charge(proof=Proof.ONCE),
        charge(proof=Proof.ONCE, device=1),
    )
    assert found is not None
    assert found.unproven == ("gemm", "memory")
    assert found.codes == ("gemm.slow", "memory.slow")


def test_the_first_row_that_matches_decides():
    """A row in front that keeps nodes in service makes what stands behind it mean nothing for what it matches."""
    kept = row(name="kept", service="IN_SERVICE")
    assert demand([kept, row()], charge()) is None
    assert demand([row(), kept], charge()) is not None


def test_what_no_row_matches_takes_nobody_out():
    """A policy says what leads out of service; there is no default."""
    assert demand(row(), charge(code="disk.full", check="disk")) is None
    assert demand([], charge()) is None


def test_proven_findings_go_first_and_prove_the_demand():
    """What is not proven yet is only told behind what is, however urgent it would be."""
    rows = [row(), row(name="urgent", codes=("nvml.xid",), urgency=100)]
    found = demand(rows, charge(code="nvml.xid", check="nvml", proof=Proof.ONCE, action=Action.REPLACE), charge())
    assert found is not None
    assert (found.row, found.codes, found.unproven, found.action) == (
        "slow",
        ("gemm.slow", "nvml.xid"),
        (),
        Action.RESET_GPU,
    )


def test_the_most_urgent_row_counts_and_the_most_is_done():
    """Of several proven findings the most urgent is the cause; all together say how much must be done."""
    rows = [row(action=Action.REPLACE), row(name="urgent", codes=("nvml.xid",), urgency=100)]
    found = demand(rows, charge(), charge(code="nvml.xid", check="nvml"))
    assert found is not None
    assert (found.row, found.cause, found.action) == ("urgent", "nvml.xid", Action.REPLACE)


def test_old_evidence_must_be_found_again():
    """From `fresh_s` after it was last found on, a finding is not proven any more."""
    rows, found = row(fresh_s=100), charge(seen=NOW)
    policy = Policy((rows,))
    assert policy.evaluate([found], {}, NOW).next_change == NOW + 100
    fresh, old = demand(rows, found, now=NOW + 99.9), demand(rows, found, now=NOW + 100)
    assert fresh is not None
    assert old is not None
    assert (fresh.unproven, old.unproven) == ((), ("gemm",))
    assert policy.evaluate([found], {}, NOW + 100).next_change is None


def test_a_finding_must_stand_as_long_as_the_row_wants():
    """Before `after_s` nothing is asked for, and the policy says when to look again."""
    rows, found = row(after_s=300), charge(since=NOW, seen=NOW)
    assert demand(rows, found, now=NOW + 299) is None
    assert Policy((rows,)).evaluate([found], {}, NOW + 299).next_change == NOW + 300
    assert demand(rows, found, now=NOW + 300) is not None


@cases(
    ("seen_at", "now", "asks", "look"),
    [
        ((), 100.0, False, None),
        ((50.0, 90.0), 100.0, False, None),
        ((50.0, 80.0, 90.0), 100.0, True, 150.0),
        ((10.0, 50.0, 80.0, 90.0), 100.0, True, 150.0),
        ((50.0, 80.0, 90.0), 149.9, True, 150.0),
        ((50.0, 80.0, 90.0), 150.0, False, None),
    ],
)
def test_a_finding_must_come_as_often_as_the_row_wants(seen_at, now, asks, look):
    """`repeats` runs must have found it within the last `within_s`; what is longer ago does not count."""
    rows, found = row(repeats=3, within_s=100), charge(since=0.0, seen=90.0)
    sightings = {found.key: seen_at}
    assert (demand(rows, found, sightings=sightings, now=now) is not None) is asks
    assert Policy((rows,)).evaluate([found], sightings, now).next_change == look


def test_time_changes_nothing_where_it_would_come_too_late():
    """A finding that is forgotten before it has stood long enough needs no look."""
    rows, found = row(repeats=2, within_s=50, after_s=300), charge(since=0.0, seen=100.0)
    assert Policy((rows,)).evaluate([found], {found.key: (90.0, 100.0)}, 100.0).next_change is None


@cases(
    ("said", "message"),
    [
        ({"repeats": 3}, "repeats and within_s go together"),
        ({"within_s": 60}, "repeats and within_s go together"),
        ({"repeats": 33, "within_s": 60}, "less than or equal to 32"),
        ({"repeats": 0}, "greater than or equal to 1"),
        ({"urgency": 101}, "less than or equal to 100"),
        ({"after_s": float("nan")}, "finite number"),
        ({"fresh_s": 0}, "greater than or equal to 1"),
        ({"codes": ()}, "at least 1 item"),
        ({"reason": ""}, "at least 1 character"),
        ({"severity": "INFO"}, "'WARNING' or 'ERROR'"),
        ({"service": "HELD"}, "'CORDONED' or 'IN_SERVICE'"),
        ({"service": "IN_SERVICE", "urgency": 10, "after_s": 5}, "so after_s, urgency has no effect: leave it out"),
        ({"when": {"xid": []}}, "must be a value"),
        ({"days": 3}, "Extra inputs"),
    ],
)
def test_rows_that_mean_nothing_are_refused(said, message):
    """Impossible values, and values that have no effect beside the others, are errors."""
    with pytest.raises(ValueError, match=message):
        row(**said)
