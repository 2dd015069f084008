"""Which runs are stored whole, and that these alone are enough for every decision."""

import random

import pytest
from tests.coordinator.fleets import CHECKS, check, fleet, head
from tests.coordinator.fleets import run as any_run

from muster.check import Scope, Worse
from muster.model import Action, Finding, Inventory, Run, ServiceState, Severity, Verdict
from muster.wire.messages import InventoryReport, Report
from muster.wire.scheduled_runs import IS_SCHEDULED
from muster_coordinator.evidence.health import Evidence
from muster_coordinator.evidence.quiet_runs import MOST_BASES
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import Announce, InventorySeen, ReportSeen, StoreRuns
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.stored_fleet import StoredFleet

SEEDS = 40


def due(seq, verdict=Verdict.PASS, **values) -> Run:
    """A run that was due by schedule and measured something."""
    usual = {"cause": "schedule", "metrics": {"tflops": [float(seq), None]}, "facts": {"name": "x", "free": seq / 8}}
    return any_run(seq, verdict).model_copy(update={**usual, **values})


def take(made: Fleet, *runs: Run, stream="s") -> list[StoreRuns]:
    """What the fleet stores of these runs, each in a report of its own."""
    stored = []
    for run in runs:
        message = Report(**{**head("a"), "sent_at": float(run.seq)}, stream=stream, after=run.seq - 1, runs=(run,))
        commands = made.handle(ReportSeen(message), float(run.seq))
        stored += [command for command in commands if isinstance(command, StoreRuns)]
    return stored


def kept(*runs: Run, made: Fleet | None = None) -> str:
    """W for each run that is stored whole, q for each quiet one."""
    stored = take(made or fleet("a"), *runs)
    return "".join("W" * len(each.runs) + "q" * len(each.quiet) for each in stored)


def test_runs_that_differ_in_numbers_only_are_quiet() -> None:
    """In metrics and in facts; the first is whole."""
    assert kept(*(due(seq) for seq in range(1, 6))) == "Wqqqq"


@pytest.mark.parametrize(
    "other",
    [
        {"cause": "r-1"},
        {"cause": None},
        {"group": "g"},
        {"verdict": Verdict.WARN},
        {"verdict": Verdict.SKIPPED},
        {"facts": {"name": "y", "free": 0.5}},
        {"metrics": {"tflops": 1.0}},
        {"params": {"size": 2}},
        {"facts": {"name": "x", "free": 0.5, "fingerprints": {}}},
        {"findings": (Finding(code="gemm.note", summary="note", severity=Severity.INFO),)},
    ],
)
def test_a_run_that_says_more_is_whole(other) -> None:
    """Because of what asked for it, or what it found."""
    assert kept(due(1), due(2), due(3, **other))[:3] == "WqW"


def test_what_only_appears_under_load_makes_no_run_whole_for_long() -> None:
    """Runs may be like several earlier ones; but not like any number of them."""
    idle, busy = {"metrics": {"a": 1.0}}, {"metrics": {"a": 1.0, "clock": 2.0}}
    assert kept(*(due(seq, **(idle if seq % 2 else busy)) for seq in range(1, 9))) == "WWqqqqqq"
    many = [due(seq, metrics={f"m{seq % (MOST_BASES + 1)}": 1.0}) for seq in range(1, 16)]
    assert kept(*many) == "W" * 15


def test_a_failure_is_a_new_beginning() -> None:
    """Until the standing has settled, every run is whole; then again one that others may be like."""
    verdicts = [Verdict.PASS, Verdict.PASS, Verdict.FAIL, *[Verdict.PASS] * 5]
    assert kept(*(due(seq, verdict) for seq, verdict in enumerate(verdicts, 1))) == "WqWWWqqq"


def test_skipped_runs_are_quiet_as_well() -> None:
    """A busy node skips a check for days."""
    assert kept(*(due(seq, Verdict.SKIPPED) for seq in range(1, 5))) == "Wqqq"


def test_a_new_stream_begins_with_a_whole_run() -> None:
    """So each stream of which anything is kept has a whole run."""
    made = fleet("a")
    take(made, due(1), due(2))
    assert [len(each.runs) for each in take(made, due(1), due(2), stream="t")] == [1, 0]


def test_a_compared_check_is_whole() -> None:
    """What the fleet is compared by is restored from whole runs."""
    made = Fleet(name="test", epoch=7)
    compared = check("gemm", Scope.NODE).model_copy(update={"compared": {"tflops": Worse.LOWER}})
    made.handle(InventorySeen(InventoryReport(**head("a"), inventory=Inventory(), checks=(compared,))), 0.0)
    assert kept(due(1), due(2), due(3), made=made) == "WWW"


def test_a_check_that_was_not_announced_is_whole() -> None:
    """It is no evidence either."""
    assert kept(due(1, check="other"), due(2, check="other")) == "WW"


def test_everybody_sees_a_quiet_run_in_full_under_the_id_that_it_keeps() -> None:
    """The id says that it is quiet; no run of a node can have such an id by itself."""
    made = fleet("a")
    take(made, due(1))
    message = Report(**head("a"), stream="s", after=1, runs=(due(2, id="0123456789abcdef.7"),))
    (told,) = [each for each in made.handle(ReportSeen(message), 2.0) if isinstance(each, Announce)]
    assert isinstance(told.payload, Run)
    assert IS_SCHEDULED.fullmatch(told.payload.id)
    assert told.payload.id.endswith(".2")
    assert told.payload == due(2, id=told.payload.id)
    (whole,) = take(made, due(3, id="0123456789abcdef.7", cause=None))
    assert not IS_SCHEDULED.fullmatch(whole.runs[0].id)


def test_after_a_restart_runs_are_quiet_as_before() -> None:
    """The runs that others may be like are stored."""
    made = fleet("a")
    stored = take(made, due(1), due(2))
    again = Fleet(name="test", epoch=8)
    bases = tuple(base for each in stored for base in each.bases)
    record = NodeRecord(
        name="a", online=True, first_seen=0.0, last_seen=0.0, service=ServiceState.IN_SERVICE, checks=(CHECKS[0],)
    )
    again.restore(StoredFleet(nodes=(record,), runs=stored[0].runs, bases=bases, streams={("a", "s"): 2}), 3.0)
    assert kept(due(3), due(4), made=again) == "qq"


def random_run(chance: random.Random, seq: int) -> Run:
    """Mostly a pass, by schedule or not, of one of two checks; now and then anything else."""
    verdict = chance.choices(list(Verdict), weights=[60, 5, 12, 4, 8])[0]
    action = chance.choice((Action.NONE, Action.REPLACE))
    finding = Finding(code="gemm.slow", summary="slow", severity=Severity.ERROR, action=action)
    return due(
        seq,
        check=chance.choice(("gemm", "gemm", "collective")),
        verdict=verdict,
        findings=(finding,) if verdict in (Verdict.FAIL, Verdict.WARN) else (),
        cause=chance.choice(("schedule", "schedule", "schedule", None)),
        group=chance.choice((None, None, None, "g")),
    )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whole_runs_alone_lead_to_the_same_evidence(seed) -> None:
    """Standings, findings and health after each whole run and at the end are those of all runs."""
    chance = random.Random(seed)
    runs = [random_run(chance, seq) for seq in range(1, 200)]
    stored = take(fleet("a"), *runs)
    whole = {run.seq for each in stored for run in each.runs}
    every, alone = Evidence(), Evidence()
    for run in runs:
        every.add(run)
        if run.seq in whole:
            alone.add(run)
        assert alone.checks == every.checks
        assert alone.health == every.health
        assert alone.findings == every.findings
    assert any(each.quiet for each in stored)
