"""A node's decisions, driven by hand."""

import itertools

from tests.agent.plans import planned

from muster.check import Idleness, Needs, Params, Scope
from muster.model import Device, Inventory, RankResult, Run, Verdict
from muster.wire.messages import Declined, Join, Prepare
from muster_agent.decide.events import (
    CommandReceived,
    CountRefusal,
    IdlenessSeen,
    InventoryFound,
    SendReply,
)
from muster_agent.decide.node import NodeAgent
from muster_agent.decide.orders import RunEnded

IDLE, BUSY, UNKNOWN = (IdlenessSeen(idleness) for idleness in Idleness)

SPREAD_S = 30.0


class Size(Params):
    size: int = 1


SEVEN = Size(size=7)

PLAN = {
    "light": planned("light", SEVEN, Needs.NOTHING),
    "heavy": planned("heavy", SEVEN, Needs.IDLE_DEVICE),
    "collective": planned("collective", SEVEN, Needs.IDLE_NODE, Scope.GROUP),
}
BACKGROUND = {"heavy": planned("heavy", SEVEN, Needs.IDLE_DEVICE, interval_s=600.0)}
DEVICES = tuple(Device(index=index, uuid=f"u{index}", model="m") for index in range(2))


class Driven:
    """A node whose ids are `id-0`, `id-1` and so on, and whose time stands still unless it is said."""

    def __init__(self, plan=PLAN, devices=DEVICES, **settings) -> None:
        ids = itertools.count()
        self.numbers = itertools.count()
        self.node = NodeAgent("n", plan, lambda: f"id-{next(ids)}", 0.0, spread_s=SPREAD_S, **settings)
        if devices is not None:
            self.feed(InventoryFound(Inventory(devices=devices)))

    def feed(self, event, now: float = 1.0):
        return self.node.handle(event, now)

    def order(self, kind, now: float = 1.0, *, epoch: int = 1, sent_at: float | None = None, **fields):
        sent = now if sent_at is None else sent_at
        header = {"id": f"command-{next(self.numbers)}", "epoch": epoch, "sent_at": sent, "expires_at": sent + 5}
        return self.feed(CommandReceived(kind(**header, **fields)), now)

    def join(self, now: float = 1.0, **fields):
        return self.order(Join, now, **{"group": "g", "check": "collective", "timeout_s": 30.0, **fields})

    def prepare(self, now: float = 1.0, **fields):
        place = {"first_rank": 0, "world_size": 4, "master_addr": "10.0.0.1", "master_port": 4000}
        return self.order(Prepare, now, **{"group": "g", **place, **fields})


def ended(run: str, check: str = "light", verdict: Verdict = Verdict.PASS) -> RunEnded:
    rank = RankResult(rank=0, verdict=verdict, duration_s=1.0)
    return RunEnded(Run(id=run, node="n", check=check, verdict=verdict, started_at=1.0, duration_s=1.0), (rank,))


def declines(commands):
    messages = [command.message for command in commands if isinstance(command, SendReply)]
    return [(message.reason, message.group) for message in messages if isinstance(message, Declined)]


def refusals(commands):
    return [command.kind for command in commands if isinstance(command, CountRefusal)]
