"""The hostile node as a member of groups: it behaves like a member, except for one lie."""

import contextlib
import time
from dataclasses import dataclass
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from tests.hostile.world import HOSTILE, Attacker

from muster.check import CheckInfo
from muster.model import Device, Finding, Inventory, RankResult, Verdict
from muster.wire import codec
from muster.wire.messages import (
    Accepted,
    Finished,
    InventoryReport,
    Join,
    Prepare,
    Presence,
    Progress,
    Ready,
    Start,
)
from muster.wire.topics import NodeTopic

HEARTBEAT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the lying member reports. Without `is_ready` it never reports that it is ready, without `ends` no result.

    `ranks` is sent without validation.
    """

    ranks: int = 1
    address: str = "127.0.0.1"
    is_ready: bool = True
    ends: bool = True
    verdict: Verdict = Verdict.PASS
    metrics: dict[str, Any] | None = None
    findings: tuple[Finding, ...] = ()
    speaks_for: tuple[int, ...] = (0,)


class LyingMember:
    """Takes part in every group that the attacker is invited to, while the context lasts.

    Its rank 0 is at `port`, and it announces `checks`. `invited` has the groups.
    """

    def __init__(self, attacker: Attacker, story: Story, port: int, checks: tuple[CheckInfo, ...]) -> None:
        self._attacker = attacker
        self._story = story
        self._port = port
        self._checks = checks
        self._gone = Event()
        self.invited: list[str] = []

    def __enter__(self) -> Self:
        self._attacker.answer = self._answer
        self._attacker.join(self._inventory())
        Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._gone.set()
        self._attacker.answer = lambda _topic, _payload: None

    def _beat(self) -> None:
        while not self._gone.wait(HEARTBEAT_S):
            with contextlib.suppress(ValueError, RuntimeError):  # the attacker has left
                online = Presence(sent_at=time.time(), node=HOSTILE, online=True)
                self._attacker.send(NodeTopic.PRESENCE, online, retain=True)

    def _inventory(self) -> InventoryReport:
        device = Device(index=0, uuid=f"SIM-{HOSTILE}-0", model="simulated", simulated=True)
        return InventoryReport(
            sent_at=time.time(), node=HOSTILE, inventory=Inventory(devices=(device,)), checks=self._checks
        )

    def _answer(self, topic: str, payload: bytes) -> None:
        if not topic.endswith(NodeTopic.COMMAND):
            return
        match codec.decode(payload, codec.COMMAND):
            case Join(group=group):
                self.invited.append(group)
                self._reply(self._accepted(group))
            case Prepare(group=group) if self._story.is_ready:
                self._reply(codec.encode(Ready(**header(group))))
            case Start(group=group):
                self._reply(codec.encode(Progress(**header(group), text="met")))
                if self._story.ends:
                    self._reply(codec.encode(Finished(**header(group), ranks=self._results())))

    def _accepted(self, group: str) -> bytes:
        honest = Accepted(**header(group), address="127.0.0.1", port=self._port, ranks=1)
        lie = {"address": self._story.address, "ranks": self._story.ranks}
        return codec.encode(honest.model_copy(update=lie))

    def _results(self) -> tuple[RankResult, ...]:
        result: dict[str, Any] = {
            "verdict": self._story.verdict,
            "findings": self._story.findings,
            "metrics": self._story.metrics or {},
            "duration_s": 1.0,
        }
        return tuple(RankResult(rank=rank, **result) for rank in self._story.speaks_for)

    def _reply(self, payload: bytes) -> None:
        self._attacker.send_unconfirmed(NodeTopic.GROUP, payload)


def header(group: str) -> dict[str, Any]:
    return {"sent_at": time.time(), "node": HOSTILE, "group": group}
