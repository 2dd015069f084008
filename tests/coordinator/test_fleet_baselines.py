"""A fleet compares its nodes with each other."""

from typing import Any

import pytest
from tests.coordinator.fleets import check, fleet, head, kinds, presence, report, run, views

from muster.check import Scope, Worse
from muster.errors import Refused
from muster.model import Health, Inventory, Run, ServiceState
from muster.wire.messages import InventoryReport
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.baseline_commands import SaveBaseline
from muster_coordinator.model.events import AppendStory, BaselineReset, FleetCommand, InventorySeen, SaveNode, StoreRuns
from muster_coordinator.model.stored_fleet import StoredFleet


def speeds(node: str, seq: int, value: float, **more: Any) -> Run:
    facts = {"backend": "cuda", "devices": [0], **more}
    return run(seq, node=node).model_copy(
        update={"id": f"{node}-{seq}", "metrics": {"tflops": [value]}, "facts": facts}
    )


def comparing(*nodes: str) -> Fleet:
    """A fleet whose nodes announce a check that is compared."""
    return joined(Fleet(name="test", epoch=7), *nodes)


def joined(made: Fleet, *nodes: str) -> Fleet:
    """The fleet after these nodes have announced themselves."""
    gemm = check("gemm", Scope.NODE).model_copy(update={"compared": {"tflops": Worse.LOWER}})
    for node in nodes:
        made.handle(InventorySeen(InventoryReport(**head(node), inventory=Inventory(), checks=(gemm,))), 0.0)
    return made


NODES = [f"n{number}" for number in range(12)]


def measured(made: Fleet, value: float = 700.0, slow: float = 500.0) -> list[FleetCommand]:
    """The commands of three runs of each node, of which n7 is slow."""
    commands: list[FleetCommand] = []
    for seq in (1, 2, 3):
        for node in NODES:
            speed = slow if node == "n7" else value
            commands += made.handle(report(speeds(node, seq, speed), after=seq - 1), float(seq))
    return commands


def test_an_outlier_degrades_its_node_and_is_told() -> None:
    """Once enough others are there, with the figures in findings, reasons and story, until it is back in line."""
    made = comparing(*NODES)
    told = [command.entry for command in measured(made) if isinstance(command, AppendStory)]
    view = made.node("n7", 4.0)
    assert view is not None
    assert (view.health, [finding.code for finding in view.findings]) == (Health.DEGRADED, ["baseline.outlier"])
    assert "tflops 500 is 28.6% worse than the 700" in view.reasons[0]
    assert [(entry.node, entry.cause) for entry in told if entry.kind == "out_of_line"] == [("n7", "n8-3")]
    for seq in (4, 5):
        commands = made.handle(report(speeds("n7", seq, 700.0), after=seq - 1), float(seq))
    assert "tell no_longer" in kinds(commands)
    assert (made.node("n7", 6.0) or view).health is Health.HEALTHY


def test_one_node_does_not_decide_what_is_compared() -> None:
    """Neither the metrics nor their direction, even if it announces and measures before all other nodes."""
    made = Fleet(name="test", epoch=7)
    lie = {"tflops": Worse.HIGHER, **{f"made_up_{number}": Worse.LOWER for number in range(50)}}
    liar = check("gemm", Scope.NODE).model_copy(update={"compared": lie})
    made.handle(InventorySeen(InventoryReport(**head("liar"), inventory=Inventory(), checks=(liar,))), 0.0)

    def lies(seq: int) -> None:
        told = speeds("liar", seq, 700.0)
        metrics = {**dict.fromkeys(lie, 1.0), **told.metrics}
        made.handle(report(told.model_copy(update={"metrics": metrics}), after=seq - 1), float(seq))

    lies(1)
    measured(joined(made, *NODES))
    lies(2)
    assert {baseline.metric for baseline in made.baselines() if baseline.nodes > 1} == {"tflops"}
    assert {baseline.worse for baseline in made.baselines() if baseline.metric == "tflops"} == {Worse.LOWER}
    against = {view.name: [finding.code for finding in view.findings] for view in views(made, 4.0) if view.findings}
    assert against == {"n7": ["baseline.outlier"]}


def test_a_restarted_fleet_compares_as_before() -> None:
    """From the last runs and the stored baselines, after an upgrade. Then what was not stored before is."""
    made = comparing(*NODES)
    commands = measured(made)
    records = tuple(node for node in (command.record for command in commands if isinstance(command, SaveNode)))
    runs = tuple(run for command in commands if isinstance(command, StoreRuns) for run in command.runs)
    baselines = tuple(command.record for command in commands if isinstance(command, SaveBaseline))
    again = Fleet(name="test", epoch=8)
    saved = StoredFleet(nodes=records, runs=runs, baselines=baselines[-1:])
    stored = kinds(again.restore(saved, 10.0))
    assert stored == ["SaveBaseline", *["SaveLevels"] * 12, "PublishReferences", *["SaveEvidence"] * 12]
    view = again.node("n7", 10.0)
    assert view is not None
    assert (view.health, view.findings[0].code) == (Health.DEGRADED, "baseline.outlier")
    assert again.baselines() == made.baselines()


def test_the_fleet_as_a_whole() -> None:
    """Counts by health and service state, who is lost and thus not known to be healthy, and what is wrong with many."""
    made = comparing(*NODES)
    measured(made)
    for seq in (4, 5, 6):
        for node in NODES:
            made.handle(report(speeds(node, seq, 600.0), after=seq - 1), float(seq))
    made.handle(presence("n3", online=False), 7.0)
    view = made.view(7.0)
    assert (view.nodes, view.health) == (12, {Health.HEALTHY: 11, Health.UNKNOWN: 1})
    assert view.service == {ServiceState.IN_SERVICE: 12}
    assert view.lost == ("n3",)
    (finding,) = view.findings
    assert (finding.code, finding.baseline) == ("baseline.shift", made.baselines()[0].id)
    commands = made.handle(BaselineReset(finding.baseline), 8.0)
    assert kinds(commands) == ["SaveBaseline", *["SaveLevels"] * 12]
    assert made.view(8.0).findings == ()


def test_an_unknown_baseline_is_refused() -> None:
    """Nothing changes."""
    with pytest.raises(Refused, match="baseline"):
        fleet("a").handle(BaselineReset("nothing"), 1.0)


def test_devices_that_compute_otherwise_make_a_suspect() -> None:
    """One whose bits differ from those of its like is suspected, and never failed by that alone."""
    made = comparing(*NODES)
    for seq in (1, 2, 3):
        for node in NODES:
            bits = "bad" if node == "n7" else "good"
            one = speeds(node, seq, 700.0, fingerprints={"product": [bits]}, models=["H200"], software={"torch": "2"})
            made.handle(report(one, after=seq - 1), float(seq))
    assert {view.name for view in views(made, 4.0) if view.health is Health.SUSPECT} == {"n7"}
