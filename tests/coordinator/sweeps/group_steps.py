"""Messages of the members of a group, and groups that they have brought to a state."""

from typing import Any

from muster.model import Finding, RankResult, Severity, Verdict
from muster.wire.messages import Accepted, Declined, Finished, Progress, Ready
from muster_coordinator.model.events import FleetCommand, SendCommand
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import GroupState
from muster_coordinator.sweeps.formation import GroupTask
from muster_coordinator.sweeps.group import Group
from muster_coordinator.sweeps.group_events import CalledOff, GroupEvent

TASK = GroupTask(check="collective", params={}, timeout_s=20.0, objective="busbw_gbps", cause="sweep")


def head(node: str) -> dict[str, Any]:
    return {"id": "m", "sent_at": 1.0, "node": node, "group": "g"}


def accepted(node: str, *, knows_secrets: bool = True) -> Accepted:
    return Accepted(**head(node), address=f"10.0.0.{node}", port=4000, ranks=8, knows_secrets=knows_secrets)


def ready(node: str) -> Ready:
    return Ready(**head(node))


def progress(node: str) -> Progress:
    return Progress(**head(node))


def declined(node: str, reason: str = "busy") -> Declined:
    return Declined(**head(node), reason=reason, detail="because")


def finished(node: str, verdict: Verdict = Verdict.PASS, code: str | None = None, gbps: float = 1.5) -> Finished:
    findings = (Finding(code=code, summary="it ended", severity=Severity.UNKNOWN),) if code else ()
    first = 8 * (int(node) - 1)
    results = (
        RankResult(
            rank=rank, verdict=verdict, findings=findings, metrics={"busbw_gbps": [gbps, gbps * 2]}, duration_s=1.0
        )
        for rank in range(first, first + 8)
    )
    return Finished(**head(node), ranks=tuple(results))


def group(state: GroupState = GroupState.FORMING, members: tuple[str, ...] = ("1", "2", "3")) -> Group:
    """A group of three that has come to `state` by the shortest way, everything at time 0."""
    made = Group("g", TASK, members, ("paired by lot",), Orders(7), 0.0, most_ranks=dict.fromkeys(members, 8))
    steps: dict[GroupState, list[GroupEvent]] = {
        GroupState.FORMING: [],
        GroupState.ELECTED: [accepted(node) for node in members],
        GroupState.READY: [ready(node) for node in members],
        GroupState.RUNNING: [progress(members[0])],
        GroupState.ENDED: [CalledOff("enough")],
    }
    for reached, events in steps.items():
        for event in events:
            made.handle(event, 0.0)
        assert made.state is reached
        if reached is state:
            break
    return made


def sent(commands: list[FleetCommand]) -> list[tuple[str, str]]:
    """Node and kind of every order."""
    return [(command.node, command.command.kind) for command in commands if isinstance(command, SendCommand)]


def run_to_end(*events: tuple[float, GroupEvent], state: GroupState = GroupState.RUNNING) -> Group:
    made = group(state)
    for at, event in events:
        made.handle(event, at)
    return made
