"""Misconduct of agents: the findings against a node that sends too much or sends wrong messages.

Such a finding stands until the agent has behaved for QUIET_S. It is a WARNING: it makes the node DEGRADED, and the
shipped policy does not drain a node for it.
"""

from muster.model import Severity
from muster_coordinator.model.nodes import Misconduct, NodeFinding

QUIET_S = 600.0

CHECK = "agent"
"""The `check` of such a finding. No check of this name exists."""


SUMMARIES = {
    Misconduct.FLOODING: "the agent sends more than a node may; the coordinator drops the excess",
    Misconduct.REFUSED: "the agent sends messages that no muster agent sends; the coordinator drops them",
    Misconduct.FAILED: "the coordinator failed on a message of the agent and dropped it; see message_failed in its log",
    Misconduct.OVER_QUOTA: "the agent reports more than the quota of a node; the rest waits in its outbox",
    Misconduct.NAME_IN_USE: "another machine uses the name of this node and is ignored; rename it, or if it replaces "
    "the node, stop the old agent and run `muster node forget`",
    Misconduct.NOT_ANNOUNCED: "the agent reports runs of checks that it has not announced; they are no evidence",
}


def finding_of(kind: Misconduct, detail: str, cause: str, now: float) -> NodeFinding:
    """The finding that stands against a node from `now` on; `cause` is the id of the event behind it."""
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
    """The time of the last misconduct of each node, by kind."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Misconduct], float] = {}

    def note(self, node: str, kind: Misconduct, now: float) -> bool:
        """Notes a misconduct; True when it did not stand against the node before."""
        is_new = (node, kind) not in self._seen
        self._seen[node, kind] = now
        return is_new

    def take_quiet(self, now: float) -> list[tuple[str, Misconduct]]:
        """Removes and returns misconduct that a node has not repeated for QUIET_S."""
        quiet = [key for key, seen in self._seen.items() if now > seen + QUIET_S]
        for key in quiet:
            del self._seen[key]
        return quiet

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] != node}
