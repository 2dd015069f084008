"""Orders and ids: whatever the coordinator sends or tells gets its id, time, epoch and expiry here."""

from typing import Any, TypeVar

from muster.wire.messages import Abort, Join, Prepare, RunCheck, Start
from muster_coordinator.model.events import SendCommand

Order = TypeVar("Order", RunCheck, Join, Prepare, Start, Abort)

RUN_TTL_S = 30.0
"""Who asks for a run now waits for it; an agent that was cut off for longer shall not start it unasked."""

REPORTED_WITHIN_S = 60.0
"""What a run may take besides: until the node is free for it, and from its end until its report is here."""


LONGEST_PATIENCE_S = 7 * 86_400.0
"""A bound on the deadline, which the node announces itself. No check takes a week."""


def run_patience_s(timeout_s: float) -> float:
    """How long a run that is ordered may say nothing; after that the order was lost, or its run with its agent."""
    return min(RUN_TTL_S + timeout_s + REPORTED_WITHIN_S, LONGEST_PATIENCE_S)


class Orders:
    """Writes orders of one leadership. Ids are the epoch and a count, so that a replayed log gives the same ones."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return f"{self.epoch}-{self._count}"

    def send(
        self, node: str, order: type[Order], now: float, *, ttl_s: float, cause: str | None, **content: Any
    ) -> SendCommand:
        """An order to `node` that it must refuse when it comes later than `ttl_s` seconds after `now`."""
        command = order(id=self.new_id(), sent_at=now, epoch=self.epoch, expires_at=now + ttl_s, cause=cause, **content)
        return SendCommand(node, command)
