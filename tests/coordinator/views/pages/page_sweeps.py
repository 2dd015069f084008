"""Sweeps for tests of pages, made in short."""

from muster.model import Verdict
from muster_coordinator.model.sweep_records import (
    Ending,
    FailedNode,
    GroupRecord,
    GroupState,
    MemberRecord,
    RoundRecord,
    SweepRecord,
    SweepRequest,
    SweepState,
)

NOW = 1_800_000_000.0
SLOW = {"verdict": Verdict.FAIL, "slow": "busbw 1 GB/s is slow: typical here is 10 GB/s"}


def group(*members, at=10.0, number=1, **more):
    measured = ({"busbw_gbps": at},)
    common = {"state": GroupState.ENDED, "ending": Ending.FINISHED, "verdict": Verdict.PASS, "objective": at}
    places = tuple(
        MemberRecord(node=node, first_rank=rank, ranks=1, verdict=Verdict.PASS, measured=measured)
        for rank, node in enumerate(members)
    )
    common |= {"id": f"{number}-{'-'.join(members)}", "places": places, "started_at": NOW - 90, "ended_at": NOW - 80}
    return GroupRecord(members=members, **{**common, **more})


def rounds(*stages, **more):
    return tuple(RoundRecord(number=number, groups=groups, **more) for number, groups in enumerate(stages, 1))


def convicted(kind, **more):
    """A culprit of this kind of record."""
    return kind(**{"confidence": 0.9, "reasons": ("slow",), **more})


def sweep(id="abcdefgh", nodes=("n1", "n2", "n3", "n4"), **more):
    """A sweep that has ended; by default nothing is convicted and there are no rounds."""
    common = {
        "state": SweepState.FINISHED,
        "strategy": "adaptive",
        "check": "collective",
        "metric": "busbw_gbps",
        "asked": SweepRequest(check="collective"),
        "verdict": Verdict.PASS,
        "created_at": NOW - 100,
        "ended_at": NOW - 40,
    }
    return SweepRecord(id=id, nodes=nodes, **{**common, **more})


def bad_node(one="n1", two="n2", three="n3", four="n4", **more):
    """A sweep in which the first node is slow with each of the others."""
    stages = rounds(
        (group(one, two, at=1.0, **SLOW), group(three, four)),
        (group(one, three, at=1.5, number=2, **SLOW), group(two, four, at=11.0, number=2)),
    )
    convicted = FailedNode(
        node=one, code="collective.slow", confidence=0.97, reasons=(f"busbw 1 GB/s with {two}, which passed",)
    )
    common = {"failed_nodes": (convicted,), "cleared_nodes": (two, three, four), "rounds": stages}
    return sweep(nodes=(one, two, three, four), **{"verdict": Verdict.FAIL, "spent_node_s": 420.0, **common, **more})
