"""What a coordinator does about the sweeps that were under way when the one before it ended."""

from muster.model import Verdict
from muster.wire.messages import Abort
from muster_coordinator.events import SendCommand
from muster_coordinator.orders import Orders
from muster_coordinator.sweep_records import Ending, GroupRecord, GroupState, RoundRecord, SweepRecord, SweepState
from muster_coordinator.sweeps.group import RELEASE_TTL_S

REASON = "the coordinator was restarted"


def interrupted(record: SweepRecord, now: float) -> SweepRecord:
    """The sweep as aborted: what it had found stays, whoever it had not settled is inconclusive."""
    failed = record.failed_nodes or record.failed_links or record.failed_fabric
    settled = {*record.cleared_nodes, *(failed.node for failed in record.failed_nodes)}
    return record.model_copy(
        update={
            "state": SweepState.ABORTED,
            "verdict": Verdict.FAIL if failed else Verdict.UNKNOWN,
            "rounds": tuple(_ended_round(stage, now) for stage in record.rounds),
            "inconclusive": tuple(node for node in record.nodes if node not in settled),
            "ended_at": now,
            "reason": REASON,
        }
    )


def release(record: SweepRecord, orders: Orders, now: float) -> list[SendCommand]:
    """Tells the members of every group that was under way to leave it."""
    return [
        orders.send(node, Abort, now, ttl_s=RELEASE_TTL_S, cause=record.id, group=group.id, reason=REASON)
        for stage in record.rounds
        for group in stage.groups
        if group.state is not GroupState.ENDED
        for node in group.members
    ]


def _ended_round(record: RoundRecord, now: float) -> RoundRecord:
    return record.model_copy(update={"groups": tuple(_ended_group(group, now) for group in record.groups)})


def _ended_group(record: GroupRecord, now: float) -> GroupRecord:
    if record.state is GroupState.ENDED:
        return record
    ended = {"state": GroupState.ENDED, "ending": Ending.ABORTED, "verdict": Verdict.UNKNOWN, "ended_at": now}
    return record.model_copy(update=ended)
