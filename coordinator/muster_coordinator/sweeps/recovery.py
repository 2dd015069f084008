"""What a coordinator does with sweeps that were running when its predecessor ended."""

from enum import StrEnum

from muster.model import Verdict
from muster.wire.messages import Abort
from muster_coordinator.model.events import Announce, FleetCommand, SaveGroup, SaveSweep, SendCommand
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import Ending, GroupRecord, GroupState, SweepRecord, SweepState
from muster_coordinator.sweeps.group import RELEASE_TTL_S
from muster_coordinator.sweeps.member import verdict_of

RESTARTED = "the coordinator was restarted"


class AfterRestart(StrEnum):
    """The choices for such a sweep: it goes on with the next round, or ends with its results so far."""

    RESUME = "resume"
    ABORT = "abort"


def interrupted(record: SweepRecord, now: float) -> SweepRecord:
    """The sweep with its running groups ended as interrupted."""
    rounds = tuple(
        stage.model_copy(update={"groups": tuple(_ended(group, now) for group in stage.groups)})
        for stage in record.rounds
    )
    return record.model_copy(update={"rounds": rounds})


def aborted(record: SweepRecord, now: float, reason: str) -> SweepRecord:
    """The sweep as aborted. Its findings stay; all other nodes are inconclusive."""
    failed = record.failed_nodes or record.failed_links or record.failed_fabric
    settled = {*record.cleared_nodes, *(failed.node for failed in record.failed_nodes)}
    rounds = tuple(stage.model_copy(update={"waiting": 0}) for stage in record.rounds)
    return record.model_copy(
        update={
            "state": SweepState.ABORTED,
            "verdict": Verdict.FAIL if failed else Verdict.UNKNOWN,
            "inconclusive": tuple(node for node in record.nodes if node not in settled),
            "rounds": rounds,
            "ended_at": now,
            "reason": reason,
        }
    )


def save_commands(record: SweepRecord) -> list[FleetCommand]:
    """The commands that store and announce a sweep with all its groups."""
    outline = tuple(stage.model_copy(update={"groups": ()}) for stage in record.rounds)
    summary = record.model_copy(update={"rounds": outline})
    groups = [SaveGroup(record.id, stage.number, group) for stage in record.rounds for group in stage.groups]
    return [SaveSweep(summary), *groups, Announce("sweep", summary)]


def release_members(record: SweepRecord, orders: Orders, now: float) -> list[SendCommand]:
    """The orders for the members of running groups to leave them."""
    return [
        orders.send(node, Abort, now, ttl_s=RELEASE_TTL_S, cause=record.id, group=group.id, reason=RESTARTED)
        for stage in record.rounds
        for group in stage.groups
        if group.state is not GroupState.ENDED
        for node in group.members
    ]


def _ended(group: GroupRecord, now: float) -> GroupRecord:
    if group.state is GroupState.ENDED:
        return group
    verdict = verdict_of((place.verdict for place in group.places), Ending.INTERRUPTED)
    changes = {"state": GroupState.ENDED, "ending": Ending.INTERRUPTED, "verdict": verdict, "ended_at": now}
    return group.model_copy(update=changes)
