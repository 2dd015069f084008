"""Records that the tests of the store write, and how they read them back."""

from muster.check import CheckInfo, Needs, Scope
from muster.model import Run, ServiceState, Verdict
from muster_coordinator.model.events import (
    StoreRuns,
)
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.sweep_records import SweepRecord, SweepState
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.store.store import Store

START = 1_800_000_000.0


def make_run(seq: int, *, node="n1", check="gemm", verdict=Verdict.PASS, **values) -> Run:
    at = START + seq
    return Run(
        id=f"{node}-{seq}", node=node, check=check, verdict=verdict, started_at=at, duration_s=1.5, seq=seq, **values
    )


def stored(*runs: Run, stream="s") -> StoreRuns:
    return StoreRuns(runs[0].node, stream, runs[-1].seq, runs)


def make_sweep(id: str, state=SweepState.RUNNING, at=START) -> SweepRecord:
    return SweepRecord(id=id, state=state, strategy="pairs", check="gemm", nodes=("n1", "n2"), created_at=at)


def make_node(name: str, last_seen: float) -> NodeRecord:
    info = CheckInfo(
        name="gemm",
        summary="",
        scope=Scope.NODE,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=1,
        objective=None,
        params={},
    )
    return NodeRecord(
        name=name, online=True, first_seen=START, last_seen=last_seen, service=ServiceState.ACCEPTING, checks=(info,)
    )


async def every_run(store: Store, limit: int, **wanted) -> list[str]:
    found, cursor = [], None
    while True:
        page = await store.runs(RunFilter(**wanted), limit, cursor)
        assert len(page.items) <= limit
        found += [run.id for run in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found
