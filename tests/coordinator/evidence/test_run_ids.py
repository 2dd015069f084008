"""The id under which a run is stored."""

import pytest
from tests.coordinator.fleets import fleet, presence, report, run

from muster.wire.scheduled_runs import scheduled_id, stream_key
from muster_coordinator.evidence.run_ids import REMEMBERED, RunIds
from muster_coordinator.model.events import FleetCommand, RunRequested, StoreRuns

OURS = "p1795403504-12"
AGENTS = "0b5e3c0a9f1d4e7cb2a6d8f0e1c3a5b7"


def named(ids: RunIds, node: str, id: str, *, is_awaited: bool = False) -> str:
    return ids.named(run(1, node=node).model_copy(update={"id": id}), "s", is_awaited=is_awaited).id


def test_a_node_uses_the_ids_of_its_own_scheduled_runs_only():
    """Those of another node, stream or number get another id."""
    own = scheduled_id(stream_key("a", "s"), 1)
    assert named(RunIds(), "a", own) == own
    for other in (scheduled_id(stream_key("b", "s"), 1), scheduled_id(stream_key("a", "t"), 1), own + "2"):
        assert named(RunIds(), "a", other) != other


@pytest.mark.parametrize("id", [AGENTS, "r1", "n1-1"])
def test_a_run_that_a_node_began_itself_keeps_its_id(id):
    """No other node can guess it."""
    assert named(RunIds(), "a", id) == id


@pytest.mark.parametrize("id", [OURS, "1795403504-12", AGENTS])
def test_an_ordered_run_keeps_its_id_only_for_its_node(id):
    """A run of another node with that id gets another id, always the same one."""
    ids = RunIds()
    ids.note_ordered(id, "a")
    assert named(ids, "a", id) == id
    other = named(ids, "b", id)
    assert other not in (id, named(ids, "c", id))
    assert named(ids, "b", id) == other


def test_a_node_cannot_use_an_id_before_it_is_ordered():
    """Ids of orders can be guessed. After a restart, a node keeps the id of a run that it was ordered before."""
    assert named(RunIds(), "b", OURS) != OURS
    assert named(RunIds(), "a", OURS, is_awaited=True) == OURS


def test_the_number_of_remembered_orders_is_bounded():
    """The oldest orders are forgotten."""
    ids = RunIds()
    for number in range(REMEMBERED + 1):
        ids.note_ordered(f"p1795403504-{number}", "a")
    assert named(ids, "a", "p1795403504-0") != "p1795403504-0"
    assert named(ids, "a", f"p1795403504-{REMEMBERED}") == f"p1795403504-{REMEMBERED}"


def stored(commands: list[FleetCommand]) -> list[str]:
    return [run.id for command in commands if isinstance(command, StoreRuns) for run in command.runs]


def test_another_node_cannot_take_the_id_of_an_ordered_run():
    """The hostile node reports the id first; the run of the right node is still stored with it."""
    made = fleet("a", "b")
    for node in ("a", "b"):
        made.handle(presence(node), 0.0)
    made.handle(RunRequested(AGENTS, "a", "gemm", {}), 1.0)
    stolen = run(1, node="b").model_copy(update={"id": AGENTS})
    assert stored(made.handle(report(stolen), 2.0)) != [AGENTS]
    assert stored(made.handle(report(run(1).model_copy(update={"id": AGENTS})), 3.0)) == [AGENTS]
