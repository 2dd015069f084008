"""The operator's references of the fleet: what is stored and said when one is set, removed or restored."""

import pytest

from muster.check import CheckInfo, Needs, Scope
from muster.errors import Refused
from muster.model import Inventory
from muster.references import Origin, Reference
from muster.wire.messages import InventoryReport, PluginInfo, References
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    EraseReference,
    InventorySeen,
    PublishReferences,
    ReferenceRemoved,
    ReferenceSet,
    SaveReference,
)
from muster_coordinator.model.references import ReferenceRecord
from muster_coordinator.model.stored_fleet import StoredFleet


def row(bound: float = 1.0, **values) -> Reference:
    return Reference.model_validate(
        {"check": "gemm", "metric": "tflops", "source": "test", "fail_below": bound, **values}
    )


def record(number: int, reference: Reference) -> ReferenceRecord:
    return ReferenceRecord(number=number, reference=reference)


def published(id: str, at: float, *rows: Reference) -> PublishReferences:
    return PublishReferences(References(id=id, sent_at=at, rows=rows))


def seen(node: str, *checks: str, failed: bool = False) -> InventorySeen:
    """What a node has said that has these checks, and perhaps a plugin that has failed."""
    infos = tuple(
        CheckInfo(
            name=name,
            summary="",
            scope=Scope.NODE,
            needs=Needs.NOTHING,
            cadence_s=None,
            timeout_s=1.0,
            objective=None,
            params={},
        )
        for name in checks
    )
    plugins = (PluginInfo(name="p", distribution=None, version=None, status="failed" if failed else "loaded"),)
    said = InventoryReport(id=f"i-{node}", sent_at=1.0, node=node, inventory=Inventory(), checks=infos, plugins=plugins)
    return InventorySeen(said)


@pytest.fixture
def fleet():
    return Fleet(name="test", epoch=7)


ONE, OTHER = row(), row(when={"nodes": 2})


def test_a_row_that_is_set_is_stored_and_said_with_all_others(fleet):
    """First it is stored, then every agent is told; the others stay."""
    assert fleet.handle(ReferenceSet(ONE), 5.0) == [SaveReference(record(1, ONE)), published("7-1", 5.0, ONE)]
    assert fleet.handle(ReferenceSet(OTHER), 6.0) == [
        SaveReference(record(2, OTHER)),
        published("7-2", 6.0, ONE, OTHER),
    ]
    assert fleet.references() == (record(1, ONE), record(2, OTHER))


def test_a_row_takes_the_place_of_the_one_with_its_key(fleet):
    """Its check, metric and conditions; it comes last, so that of equals it is the one that counts."""
    fleet.handle(ReferenceSet(ONE), 5.0)
    fleet.handle(ReferenceSet(OTHER), 6.0)
    new = row(3.0, unit="TFLOP/s")
    assert fleet.handle(ReferenceSet(new), 7.0) == [
        EraseReference(1),
        SaveReference(record(3, new)),
        published("7-3", 7.0, OTHER, new),
    ]
    assert fleet.references() == (record(2, OTHER), record(3, new))


def test_what_is_set_is_the_operators(fleet):
    """Whatever origin it claims."""
    fleet.handle(ReferenceSet(row(origin="shipped")), 5.0)
    assert [kept.reference.origin for kept in fleet.references()] == [Origin.OPERATOR]


def test_a_row_is_removed(fleet):
    """The others are said again without it."""
    fleet.handle(ReferenceSet(ONE), 5.0)
    fleet.handle(ReferenceSet(OTHER), 6.0)
    assert fleet.handle(ReferenceRemoved(ONE.key), 7.0) == [EraseReference(1), published("7-3", 7.0, OTHER)]
    assert fleet.references() == (record(2, OTHER),)


def test_a_row_that_is_not_there_cannot_be_removed(fleet):
    """The message names those there are, and nothing changes; of nothing nothing can be removed."""
    with pytest.raises(Refused, match="valid: none"):
        fleet.handle(ReferenceRemoved(ONE.key), 5.0)
    fleet.handle(ReferenceSet(ONE), 5.0)
    with pytest.raises(Refused, match=r"unknown operator's reference .*did you mean"):
        fleet.handle(ReferenceRemoved(OTHER.key), 6.0)
    assert fleet.references() == (record(1, ONE),)


def test_a_restart_says_them_again(fleet):
    """The broker may have lost them; also that there are none is said, as it may have kept old ones."""
    rows = (record(3, ONE), record(8, OTHER))
    assert fleet.restore(StoredFleet(references=rows), 5.0)[0] == published("7-1", 5.0, ONE, OTHER)
    assert fleet.references() == rows
    assert fleet.handle(ReferenceSet(row(2.0)), 6.0)[1] == SaveReference(record(9, row(2.0)))
    assert Fleet(name="test", epoch=7).restore(StoredFleet(), 5.0)[0] == published("7-1", 5.0)


def test_a_check_that_no_node_has_is_refused(fleet):
    """With the nearest name; nothing changes."""
    fleet.handle(seen("a", "gem", "nvml"), 1.0)
    with pytest.raises(Refused, match="unknown check 'gemm'; did you mean 'gem'"):
        fleet.handle(ReferenceSet(ONE), 5.0)
    assert fleet.references() == ()
    fleet.handle(seen("b", "gemm"), 6.0)
    assert fleet.handle(ReferenceSet(ONE), 7.0) != []


def test_while_not_all_checks_are_known_any_is_taken(fleet):
    """It may be one of a plugin that has failed on a node."""
    fleet.handle(seen("a", "nvml", failed=True), 1.0)
    assert fleet.handle(ReferenceSet(ONE), 5.0) != []


def test_what_does_not_fit_into_a_message_is_refused(fleet):
    """All that is set must reach the agents; what was set before stays, and after a removal there is room again."""
    large = row(source="x" * 600_000)
    fleet.handle(ReferenceSet(large), 5.0)
    with pytest.raises(Refused, match="message of 1048576 bytes, and with this one they take 12"):
        fleet.handle(ReferenceSet(large.model_copy(update={"metric": "other"})), 6.0)
    assert fleet.references() == (record(1, large),)
    assert fleet.handle(ReferenceSet(large), 7.0) != []
