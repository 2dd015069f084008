"""Sweeps that have ended, made up group by group."""

from itertools import count
from typing import Any

import pytest

from muster.model import Topology, Verdict
from muster_coordinator.model.sweep_records import (
    Blame,
    Ending,
    FailedFabric,
    FailedNode,
    GroupRecord,
    GroupState,
    MemberRecord,
    RoundRecord,
    SweepRecord,
    SweepState,
)


@pytest.fixture
def group():
    """Makes a group of nodes with two ranks each, all of which measured the same."""
    numbers = count(1)

    def make(*members, at=None, verdict=Verdict.PASS, **values):
        metrics = {} if at is None else {"algbw_gbps": at * 0.8, "busbw_gbps": at, "wrong_elements": 0.0}
        reported = () if at is None else (metrics, metrics)
        places = tuple(
            MemberRecord(
                node=node,
                first_rank=2 * place,
                ranks=2,
                verdict=None if at is None else Verdict.PASS,
                measured=reported,
            )
            for place, node in enumerate(members)
        )
        settled: dict[str, Any] = {
            "id": f"s-{next(numbers)}",
            "state": GroupState.ENDED,
            "ending": Ending.FINISHED,
            "verdict": verdict,
            "objective": at,
            "places": places,
            "reasons": ("every node once",),
        }
        return GroupRecord(members=members, started_at=1.0, ended_at=20.0, **(settled | values))

    return make


@pytest.fixture
def sweep():
    """Makes a finished sweep of rounds, each a list of groups."""

    def make(*rounds, nodes=None, **values):
        stages = tuple(RoundRecord(number=number, groups=tuple(them)) for number, them in enumerate(rounds, 1))
        seen = dict.fromkeys(node for stage in stages for it in stage.groups for node in it.members)
        settled: dict[str, Any] = {
            "id": "s",
            "state": SweepState.FINISHED,
            "strategy": "adaptive",
            "check": "collective",
            "metric": "busbw_gbps",
            "nodes": tuple(nodes or sorted(seen)),
            "rounds": stages,
            "created_at": 0.0,
            "ended_at": 60.0,
        }
        return SweepRecord(**(settled | values))

    return make


@pytest.fixture
def bad_link(group, sweep):
    """n1 passes alone and is slow with n2, n3 and n5, which pass elsewhere; n6 has vanished."""
    slow = {"verdict": Verdict.FAIL, "slow": "busbw 1 GB/s is slow: typical here is 10 GB/s"}
    gone = Blame(node="n6", reason="lost", detail="its agent has vanished")
    lost = {"verdict": Verdict.UNKNOWN, "ending": Ending.ABORTED, "blamed": (gone,)}
    record = sweep(
        [group("n1", "n2", at=1.0, **slow), group("n3", "n4", at=10.0), group("n5", "n6", **lost)],
        [group("n1", at=90.0), group("n4", at=91.0), group("n2", "n5", at=10.2), group("n3", at=91.0)],
        [group("n1", "n3", at=1.1, **slow)],
        [group("n1", "n5", at=1.2, **slow)],
        failed_nodes=(
            FailedNode(
                node="n1",
                part="node_link",
                direction="send",
                code="collective.slow",
                confidence=0.875,
                reasons=("it passes alone, so that its link is to blame", "busbw 1 GB/s with n2 (which passed)"),
            ),
        ),
        cleared_nodes=("n2", "n3", "n4", "n5"),
        inconclusive=("n6",),
        notes=("n6: lost: its agent has vanished", "n2 and n4 were bad together and well otherwise"),
        spent_node_s=420.0,
        verdict=Verdict.FAIL,
    )
    first, *others = record.rounds
    learned = first.model_copy(update={"learned": ("cleared: n3, n4", "suspected: n1, n2")})
    return record.model_copy(update={"rounds": (learned, *others)})


@pytest.fixture
def bad_leaf(group, sweep):
    """The leaf of n3 and n4 is at fault, so that nothing can be said about them."""
    slow = {"verdict": Verdict.FAIL, "slow": "busbw 1 GB/s is slow"}
    return sweep(
        [group("n1", "n3", at=1.0, **slow), group("n2", "n4", at=1.0, **slow)],
        [group("n1", "n2", at=10.0), group("n3", "n4", at=1.0, **slow)],
        failed_fabric=(FailedFabric(leaves=("l2",), code="collective.slow", confidence=0.9, reasons=("none passes",)),),
        cleared_nodes=("n1", "n2"),
        inconclusive=("n3", "n4"),
        notes=("nothing can be said about n3, n4 while leaf l2 is at fault",),
    )


@pytest.fixture
def places():
    """Two leaves of two nodes each."""
    return {f"n{number}": Topology(leaf=f"l{(number + 1) // 2}", rack=f"r{number}") for number in range(1, 5)}
