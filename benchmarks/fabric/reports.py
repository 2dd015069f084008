"""What the members of a group report when it has ended, as evidence of a sweep.

Each report goes the way that it takes in a coordinator: the findings of the members become the faults of a group record
(`sweeps.member`), and the record becomes evidence (`sweeps.group_run`). The texts are those of agents.
"""

from collections.abc import Iterable, Mapping

from muster.model import Verdict
from muster_coordinator.model.probes import GroupRun, Probe
from muster_coordinator.model.sweep_records import Blame, Ending, GroupRecord, GroupState, MemberRecord
from muster_coordinator.sweeps.group_run import group_run_of
from muster_coordinator.sweeps.member import LOST, gravest

BUSBW, BY_RAIL = "busbw_gbps", "rail_busbw_gbps"

BUSY = ("busy", "another run has the devices")
KILLED = ("run.killed", "the run's process was killed by SIGABRT")
FAILED = ("run.raised", "DistBackendError: a peer has closed the connection")
LATE = ("run.timeout", "not done within 60 s")
VANISHED = (LOST, "its agent has vanished")

MemberFault = tuple[str, str]
"""A reason for programs and a text for people."""


def measured(group: str, probe: Probe, busbw_gbps: float, rails_gbps: Iterable[float]) -> GroupRun:
    """All members measured the same bus bandwidth; a run on separate rails has that of each."""
    metrics: dict[str, float | list[float | None] | None] = {BUSBW: busbw_gbps}
    if probe.by_rail:
        metrics[BY_RAIL] = [*rails_gbps]
    places = tuple(MemberRecord(node=node, verdict=Verdict.PASS, measured=(metrics,)) for node in probe.members)
    return _run(group, probe, Ending.FINISHED, places, objective=busbw_gbps)


def ended(group: str, probe: Probe, faults: Mapping[str, MemberFault], ending: Ending) -> GroupRun:
    """Members ended with these faults, the others had no time to report."""
    blamed = [Blame(node=node, reason=reason, detail=detail) for node, (reason, detail) in faults.items()]
    places = tuple(
        MemberRecord(node=node, verdict=Verdict.UNKNOWN if has_reported(faults.get(node)) else None)
        for node in probe.members
    )
    return _run(group, probe, ending, places, blamed=gravest(blamed))


def has_reported(fault: MemberFault | None) -> bool:
    """Whether a member with this fault sent results: its ranks ended, and its agent was there to say so."""
    return fault is not None and fault[0].startswith("run.")


def _run(
    group: str,
    probe: Probe,
    ending: Ending,
    places: tuple[MemberRecord, ...],
    *,
    objective: float | None = None,
    blamed: tuple[Blame, ...] = (),
) -> GroupRun:
    record = GroupRecord(
        id=group,
        members=probe.members,
        state=GroupState.ENDED,
        ending=ending,
        objective=objective,
        by_rail=probe.by_rail,
        places=places,
        blamed=blamed,
        reasons=(probe.reason,),
        started_at=0.0,
    )
    return group_run_of(record, BY_RAIL)
