"""Ids, secrets of groups, and orders to nodes: each gets its id, time, epoch and expiry here."""

import hmac
from typing import Any, TypeVar

from muster.wire.messages import Abort, Join, Prepare, RunCheck, Start
from muster_coordinator.model.events import SendCommand

OrderT = TypeVar("OrderT", RunCheck, Join, Prepare, Start, Abort)

RUN_TTL_S = 30.0
"""Expiry of an ordered run. A person waits for it; an agent that was cut off for longer must not start it."""

REPORTED_WITHIN_S = 60.0
"""Time besides the run itself: until the node is free, and from its end until its report arrives."""


LONGEST_PATIENCE_S = 7 * 86_400.0
"""Bound on the wait: the node announces the timeout of a check itself. No check takes a week."""


def run_patience_s(timeout_s: float) -> float:
    """Seconds after which an ordered run without a report counts as lost, with its order or its agent."""
    return min(RUN_TTL_S + timeout_s + REPORTED_WITHIN_S, LONGEST_PATIENCE_S)


class Orders:
    """Writes the orders of one epoch. Ids are the epoch and a count, so a replay gives the same ids.

    `secret_key` is random, and the secrets of groups are made from it. Without a key, groups have none.
    """

    def __init__(self, epoch: int, secret_key: bytes | None = None) -> None:
        self.epoch = epoch
        self._secret_key = secret_key
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return f"{self.epoch}-{self._count}"

    def secret_of(self, group: str) -> str | None:
        """The secret of a group: always the same, because a Prepare may have to be sent again."""
        return None if self._secret_key is None else hmac.digest(self._secret_key, group.encode(), "sha256").hex()

    def send(
        self, node: str, order: type[OrderT], now: float, *, ttl_s: float, cause: str | None, **content: Any
    ) -> SendCommand:
        """An order to `node`, which refuses it later than `ttl_s` seconds after `now`."""
        command = order(id=self.new_id(), sent_at=now, epoch=self.epoch, expires_at=now + ttl_s, cause=cause, **content)
        return SendCommand(node, command)
