"""What people may ask of a fleet."""

from typing import Any

import pytest
from tests.coordinator.fleets import check, fleet, head, kinds, presence, sweep, views

from muster.check import Scope
from muster.errors import Refused
from muster.model import Inventory
from muster.wire.messages import InventoryReport
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, RunRequested, SendCommand, SweepAbortRequested


def test_a_run_is_ordered_under_the_id_that_was_asked_for() -> None:
    """The order expires, carries the epoch, and names the request as its cause."""
    told, order = fleet("a").handle(RunRequested("run-1", "a", "gemm", {"size": 8}), 10.0)
    assert kinds([told, order]) == ["tell run_requested", "run_check a"]
    assert isinstance(order, SendCommand)
    assert (order.command.epoch, order.command.cause, order.command.expires_at) == (7, "run-1", 40.0)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (RunRequested("r", "x", "gemm", {}), "unknown node 'x'"),
        (RunRequested("r", "lost", "gemm", {}), "node 'lost' is lost"),
        (RunRequested("r", "a", "gem", {}), "did you mean 'gemm'"),
        (RunRequested("r", "a", "collective", {}), "strategy single"),
        (RunRequested("r", "a", "gemm", {"sise": 1}), "did you mean 'size'"),
        (RunRequested("r", "a", "gemm", {"size": 0}), "parameter 'size' of check 'gemm': 0 is less than"),
        (sweep("s", strategy="pear"), "did you mean 'pairs'"),
        (sweep("s", check="colective", strategy="pairs"), "did you mean 'collective'"),
        (sweep("s", check="gemm", strategy="pairs"), "its only valid strategy is single"),
        (sweep("s", strategy="pairs", nodes=("a",)), "needs at least 2 nodes"),
        (sweep("s", strategy="pairs", nodes=("a", "lost")), "node 'lost' is lost"),
        (sweep("s", strategy="pairs", nodes=("a", "x")), "unknown node 'x'"),
        (sweep("s", strategy="pairs", nodes=("a", "b"), select="rack=r1"), "contradict each other"),
        (sweep("s", strategy="pairs", select="rack=r9"), "unknown rack 'r9'"),
        (sweep("s", strategy="pairs", select="a,lost"), "node 'lost' is lost"),
        (sweep("s", strategy="whole", pairing="random"), "is for strategy pairs"),
        (sweep("s", strategy="pairs", pairing="interrack"), "did you mean 'inter_rack'"),
        (sweep("s", strategy="pairs", pairing="rail"), "needs a check that measures each rail"),
        (sweep("s", max_parallel="1"), "max_parallel 1 is too few: adaptive needs 2 nodes at once"),
        (sweep("s", max_parallel="110%"), "neither a number of nodes"),
        (sweep("s", max_parallel="2.5"), "neither a number of nodes"),
        (sweep("s", max_parallel="half"), "such as 25%"),
        (sweep("s", strategy="whole", max_parallel="50%"), "contradicts strategy whole"),
        (sweep("s", max_node_s=60.0), "less than the 70 node-seconds that one group of 2 takes"),
        (sweep("s", strategy="pairs", params={"x": 1}), "unknown parameter"),
        (sweep("running", strategy="pairs"), "there is a sweep 'running' already"),
        (SweepAbortRequested("other", "enough"), "unknown sweep 'other'"),
    ],
)
def test_requests_that_are_not_valid_are_refused(event: Any, message: str) -> None:
    """The refusal says what would be valid, and nothing has changed."""
    made = fleet("a", "b", "c", "d", "lost")
    made.handle(presence("lost", online=False), 1.0)
    made.handle(sweep("running", strategy="pairs", nodes=("c", "d")), 1.0)
    before = (views(made, 1.0), made.sweeps())
    with pytest.raises(Refused, match=message):
        made.handle(event, 1.0)
    assert (views(made, 1.0), made.sweeps()) == before


def test_a_hundred_sweeps_wait_at_most() -> None:
    """Another request is refused until one of them has ended. Whoever sends requests in a loop cannot fill memory."""
    made = fleet("a", "b")
    for number in range(100):
        made.handle(sweep(f"s{number}", strategy="pairs"), 1.0)
    with pytest.raises(Refused, match="100 sweeps have not ended yet: wait until one ends, or abort one"):
        made.handle(sweep("more", strategy="pairs"), 1.0)
    made.handle(SweepAbortRequested("s50", "enough"), 1.0)
    assert made.handle(sweep("more", strategy="pairs"), 1.0)


def test_a_value_that_fits_none_of_several_kinds_is_told_why_not() -> None:
    """As an optional number is: the message names what would be right."""
    made = Fleet(name="test", epoch=7)
    optional = check("gemm", Scope.NODE, size={"anyOf": [{"type": "integer"}, {"type": "null"}]})
    made.handle(InventorySeen(InventoryReport(**head("a"), inventory=Inventory(), checks=(optional,))), 0.0)
    with pytest.raises(Refused, match="'x' is not of type 'integer' and 'x' is not of type 'null'"):
        made.handle(RunRequested("r", "a", "gemm", {"size": "x"}), 0.0)


def test_the_patience_for_a_check_is_a_week_at_most() -> None:
    """A node may announce a timeout of a year for its check."""
    made = Fleet(name="test", epoch=7)
    endless = check("gemm", Scope.NODE).model_copy(update={"timeout_s": 366 * 86_400.0})
    made.handle(InventorySeen(InventoryReport(**head("a"), inventory=Inventory(), checks=(endless,))), 0.0)
    case = made.case("a")
    assert case is not None
    assert case.silent_after_s == {"gemm": 7 * 86_400.0}


@pytest.mark.parametrize(
    "size",
    [{"$ref": "http://127.0.0.1:1/schema"}, {"type": "string", "pattern": "^(a+)+$"}, {"allOf": [{"type": "string"}]}],
    ids=["somewhere else", "a slow pattern", "what is not simple"],
)
def test_only_simple_rules_of_a_schema_are_applied(size: dict[str, Any]) -> None:
    """No reference is fetched, and no pattern is evaluated; the node itself declines parameters that do not fit."""
    made = Fleet(name="test", epoch=7)
    odd = check("gemm", Scope.NODE, size=size)
    made.handle(InventorySeen(InventoryReport(**head("a"), inventory=Inventory(), checks=(odd,))), 0.0)
    asked = RunRequested("r", "a", "gemm", {"size": "a" * 40 + "!"})
    assert kinds(made.handle(asked, 0.0)) == ["tell run_requested", "run_check a"]
