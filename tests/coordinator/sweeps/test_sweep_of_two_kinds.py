"""A sweep of a fleet with two kinds of hardware, from the plan to what an operator reads."""

from typing import Any

from tests.coordinator.sweeps.play import Play, plan

from muster.model import Verdict
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.probes import Site
from muster_coordinator.views.sweeps.amounts import amounts_of
from muster_coordinator.views.sweeps.result import sweep_report

SITES = tuple(Site(f"n{number}", None, "l1", "old" if number % 2 else "new") for number in range(8))
SPEED: dict[str, Any] = {site.node: 200.0 if site.hardware_kind == "old" else 400.0 for site in SITES}


def test_a_healthy_fleet_of_two_kinds_passes() -> None:
    """After one run of each node. The record has the nodes of each kind, and the text says how they were compared."""
    record = Play(plan(Strategy.ADAPTIVE, 8, sites=SITES), **SPEED).to_end()
    assert (record.verdict, len(record.rounds)) == (Verdict.PASS, 1)
    assert record.hardware == {"new": ("n0", "n2", "n4", "n6"), "old": ("n1", "n3", "n5", "n7")}
    text = sweep_report(record)
    for kind, typical in (("new", 400), ("old", 200)):
        note = f"note: 4 nodes with hardware {kind} were compared with each other: typical is {typical} GB/s"
        assert note in text


def test_a_bad_old_node_is_named_and_explained() -> None:
    """Beside what is typical of old nodes, in the result and in the explanation."""
    record = Play(plan(Strategy.ADAPTIVE, 8, sites=SITES), **{**SPEED, "n3": 80.0}).to_end()
    assert [failed.node for failed in record.failed_nodes] == ["n3"]
    assert all("typical with hardware old here is 200 GB/s" in why for why in record.failed_nodes[0].reasons)
    amounts = amounts_of(record, {})
    good = next(group for group in record.rounds[0].groups if {"n1", "n5", "n7"}.issuperset(group.members))
    assert (amounts.typical(good), amounts.kind(good)) == (200.0, "of several nodes with hardware old")
