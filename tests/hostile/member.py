"""The hostile node as a member of groups: it says what a member says, except for one lie."""

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
    """What the member says where an honest one says what is. Without `is_ready` it never is, without `ends` it hangs.

    `ranks` goes past our own model of the message.
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
    """Takes part in every group that the attacker is invited to, while the context lasts; rank 0 is at `port`.

    `checks` are those that it says it can run.
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
                self._attacker.say(NodeTopic.PRESENCE, online, retain=True)

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
                self._say(self._accepted(group))
            case Prepare(group=group) if self._story.is_ready:
                self._say(codec.encode(Ready(**header(group))))
            case Start(group=group):
                self._say(codec.encode(Progress(**header(group), text="met")))
                if self._story.ends:
                    self._say(codec.encode(Finished(**header(group), ranks=self._results())))

    def _accepted(self, group: str) -> bytes:
        true = Accepted(**header(group), address="127.0.0.1", port=self._port, ranks=1)
        said = {"address": self._story.address, "ranks": self._story.ranks}
        return codec.encode(true.model_copy(update=said))

    def _results(self) -> tuple[RankResult, ...]:
        said: dict[str, Any] = {
            "verdict": self._story.verdict,
            "findings": self._story.findings,
            "metrics": self._story.metrics or {},
            "duration_s": 1.0,
        }
        return tuple(RankResult(rank=rank, **said) for rank in self._story.speaks_for)

    def _say(self, payload: bytes) -> None:
        self._attacker.shout(NodeTopic.GROUP, payload, qos=1)


def header(group: str) -> dict[str, Any]:
    return {"sent_at": time.time(), "node": HOSTILE, "group": group}
