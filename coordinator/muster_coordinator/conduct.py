"""How agents behave towards the coordinator: what is held against a node that sends too much, or what is wrong.

Such a finding stands until the agent has behaved for QUIET_S. It is a WARNING: the node's health is DEGRADED, and no
policy takes a node out of service for it.
"""

from enum import StrEnum

from muster.model import Severity
from muster_coordinator.records import NodeFinding

QUIET_S = 600.0

CHECK = "agent"
"""What stands in such a finding where others name their check."""


class Misconduct(StrEnum):
    """What an agent can do wrong; the code of the finding."""

    FLOODING = "agent.flooding"
    REFUSED = "agent.message_refused"
    FAILED = "agent.message_failed"
    OVER_QUOTA = "agent.over_quota"
    NOT_ANNOUNCED = "agent.check_not_announced"


SUMMARIES = {
    Misconduct.FLOODING: "its agent sends more than a node may; what is beyond that is dropped",
    Misconduct.REFUSED: "its agent sends messages that no agent of muster sends; they are dropped",
    Misconduct.FAILED: "a message of its agent made the coordinator fail; it was dropped, and the log has the details",
    Misconduct.OVER_QUOTA: "its agent reports more than may be stored of a node in a day; the rest waits in its outbox",
    Misconduct.NOT_ANNOUNCED: "its agent reports runs of checks that it has not announced; they say nothing about it",
}


def finding_of(kind: Misconduct, detail: str, cause: str, now: float) -> NodeFinding:
    """The finding that stands against a node from `now` on."""
    return NodeFinding(
        code=kind,
        summary=f"{SUMMARIES[kind]}: {detail}" if detail else SUMMARIES[kind],
        severity=Severity.WARNING,
        check=CHECK,
        run=cause,
        since=now,
        seen=now,
    )


class Conduct:
    """When each node has last done each wrong, of those that stand against it."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Misconduct], float] = {}

    def note(self, node: str, kind: Misconduct, now: float) -> bool:
        """Notes a wrong; whether it did not stand against the node yet."""
        is_new = (node, kind) not in self._seen
        self._seen[node, kind] = now
        return is_new

    def take_quiet(self, now: float) -> list[tuple[str, Misconduct]]:
        """What stands against nodes no longer."""
        quiet = [key for key, seen in self._seen.items() if now > seen + QUIET_S]
        for key in quiet:
            del self._seen[key]
        return quiet

    def forget(self, node: str) -> None:
        """Remembers nothing of a node that has left."""
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] != node}
