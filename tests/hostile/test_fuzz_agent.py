"""An agent accepts or refuses every message on its topics; no message has any other effect.

MUSTER_FUZZ=500000 sends that many messages, and MUSTER_FUZZ_SEED=7 chooses other ones.
"""

import itertools
import os
import resource
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pytest
import structlog
from tests.agent.plans import planned
from tests.hostile.mutation import messages, mutate

from muster.check import Idleness, Needs, Params, Scope
from muster.config import BrokerSettings, Settings
from muster.errors import RemoteError
from muster.model import Device, Inventory, RankResult, Run, Verdict
from muster.references import applicable
from muster.wire import codec
from muster.wire.messages import Abort, Join, Prepare, RunCheck, Start, new_id
from muster.wire.topics import NodeTopic, Topics
from muster_agent.decide import events
from muster_agent.decide.node import NodeAgent
from muster_agent.decide.orders import Order, RanksReady, RunEnded, RunProgressed
from muster_agent.wire.link import AgentLink
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import Outbox

MESSAGES = int(os.environ.get("MUSTER_FUZZ", "5000"))
SEED = int(os.environ.get("MUSTER_FUZZ_SEED", "1"))

SLOWEST_S = 1.0
"""Processor time of the slowest message: four times what 100 kB of nested lists take."""

REFUSED = "muster_agent_refused_messages_total"

MESSAGES_TO_AN_AGENT = 200
"""Then a new agent begins: one order with a high epoch makes an agent refuse all later orders."""

MOST_GROWTH_BYTES = 256 << 20
"""How much the peak memory of the process may grow, for any number of messages."""

TOPICS = Topics("default")
COMMANDS = TOPICS.node("n", NodeTopic.COMMAND)
OTHERS = {
    TOPICS.node("n", NodeTopic.ACK): codec.ACK,
    TOPICS.coordinator: codec.COORDINATOR,
    TOPICS.references: codec.REFERENCES,
}


class SizeAndWord(Params):
    size: int = 1
    word: str = ""


PLAN = {
    "light": planned("light", SizeAndWord(), Needs.NOTHING),
    "heavy": planned("heavy", SizeAndWord(), Needs.IDLE_NODE),
    "collective": planned("collective", SizeAndWord(), Needs.IDLE_NODE, Scope.GROUP),
}


class FuzzedAgent:
    """Link and Node, connected as in the daemon. Every command succeeds, at once or after a few messages."""

    def __init__(self, outbox: Outbox, random: Random, carried_out: Counter[str]) -> None:
        settings = Settings(node="n", broker=BrokerSettings(url="mqtt://127.0.0.1"))
        self.outbox = outbox
        self.metrics = AgentMetrics("n1")
        self.link = AgentLink(settings, outbox, self.metrics, self.feed, self.take_references)
        self.now = time.time()
        self.node = NodeAgent("n", PLAN, new_id, self.now, spread_s=1.0)
        self._carried_out = carried_out
        self._random = random
        self._events: deque[events.AgentEvent] = deque()
        self._running: dict[str, Order] = {}
        device = Device(index=0, uuid="u", model="m")
        self.feed(events.InventoryFound(Inventory(devices=(device,))))

    def feed(self, event: events.AgentEvent) -> None:
        self._events.append(event)
        while self._events:
            for command in self.node.handle(self._events.popleft(), self.now):
                self._carried_out[type(command).__name__] += 1
                self._carry_out(command)

    def pass_time(self) -> None:
        """Up to a second passes, and some runs end."""
        self.now += self._random.choice((0.0, 0.0, 0.1, 1.0))
        for run in [*self._running]:
            if self._random.random() < 0.1:
                self._end(run)
        self.feed(events.DueTimeReached())

    def take_references(self, rows: Any) -> None:
        applicable(rows, "collective", {"nodes": 2, "gpu_model": "m"})

    def _carry_out(self, command: events.AgentCommand) -> None:
        match command:
            case events.ProbeIdle():
                self._events.append(events.IdlenessSeen(Idleness.IDLE))
            case events.OpenPort(group):
                self._events.append(events.PortOpened(group, "127.0.0.1", 4000))
            case events.ConnectToRankZero(group):
                self._events.append(events.RankZeroReached(group))
            case events.StartRun(order):
                order.params.model_dump_json()
                self._running[order.run] = order
                self._events += [RunProgressed(order.run, "begun"), *([RanksReady(order.run)] if order.places else [])]
            case events.StopRun(run):
                self._end(run)
            case events.ReportRun(run):
                self.outbox.append(run)
            case events.SendReply(message):
                assert len(codec.encode(message)) < codec.MAX_MESSAGE_BYTES, message
            case events.CountRefusal(kind):
                self.metrics.refused(kind)

    def _end(self, id: str) -> None:
        if order := self._running.pop(id, None):
            about: dict[str, Any] = {"verdict": Verdict.PASS, "duration_s": 1.0}
            run = Run(id=id, node="n", check=order.check.name, started_at=self.now, group=order.group, **about)
            ranks = tuple(RankResult(rank=place.rank, **about) for place in order.places)
            self._events.append(RunEnded(run, ranks or (RankResult(rank=0, **about),)))


def valid(agent: FuzzedAgent, random: Random) -> Iterator[tuple[str, bytes]]:
    """Yields valid topics and messages without end; they lead the agent through one group after the other."""
    groups = 0
    fixed: dict[str, Any] = {
        "id": map("id-{}".format, itertools.count()).__next__,
        "epoch": 1,
        "sent_at": lambda: agent.now,
        "expires_at": lambda: agent.now + 30.0,
        "group": lambda: f"g{groups}",
        "check": lambda: random.choice((*PLAN, "collective", "unknown")),
        "params": lambda: random.choice(({}, {"size": 2}, {"word": "w"}, {"unknown": [1]})),
        "devices": lambda: random.choice((None, 1)),
        "first_rank": lambda: random.choice((0, 1)),
        "world_size": 2,
        "master_addr": "127.0.0.1",
        "master_port": 4000,
        "stream": agent.outbox.stream,
        "stored_through": lambda: random.randrange(agent.outbox.last + 2),
    }
    orders = [(COMMANDS, messages(kind, random, **fixed)) for kind in (Join, Prepare, Start, RunCheck, Abort)]
    others = [(topic, messages(kind, random, **fixed)) for topic, kind in OTHERS.items()]
    while True:
        for topic, source in (*orders, *others):
            yield topic, next(source)
        groups += 1


@pytest.mark.timeout(60 + MESSAGES / 100)
def test_every_message_is_accepted_or_refused(tmp_path: Path) -> None:
    """It raises nothing but RemoteError, in bounded time and memory. The agent obeys valid messages in between."""
    random, outbox = Random(SEED), Outbox(tmp_path / "outbox.db", 1000, "boot")
    refused, carried_out = Counter[str](), Counter[str]()
    slowest_s, grown_from = 0.0, _peak_bytes()
    began = time.monotonic()
    for number in range(MESSAGES):
        if number % MESSAGES_TO_AN_AGENT == 0:
            agent = FuzzedAgent(outbox, random, carried_out)
            source = valid(agent, random)
        if number % 4 == 0:
            topic, message = next(source)
        payload = mutate(message, random) if number % 4 < 3 else message
        started = time.thread_time()
        try:
            agent.link._handle(topic, payload)
        except RemoteError as error:
            refused[error.kind] += 1
        except Exception as error:
            raise AssertionError(f"message {number} of seed {SEED} on {topic}: {payload[:2000]!r}") from error
        slowest_s = max(slowest_s, time.thread_time() - started)
        agent.pass_time()
    outbox.close()
    grown = _peak_bytes() - grown_from
    rate = MESSAGES / (time.monotonic() - began)
    print(f"{MESSAGES} messages, {rate:.0f}/s, slowest {slowest_s:.3f} s, grown by {grown >> 20} MiB, {refused}")
    print(carried_out)
    assert slowest_s < SLOWEST_S
    assert grown < MOST_GROWTH_BYTES
    assert refused["malformed"] > MESSAGES / 10
    assert {"StartRun", "ReleaseRanks", "StopRun", "ReportRun", "ConnectToRankZero", "ClosePort", "CountRefusal"} <= {
        *carried_out
    }


def test_a_message_that_finds_a_bug_is_dropped(tmp_path, monkeypatch):
    """It is counted, and the first one is logged with a traceback; the agent obeys the next message."""
    outbox, carried_out = Outbox(tmp_path / "outbox.db", 1000, "boot"), Counter[str]()
    agent = FuzzedAgent(outbox, Random(SEED), carried_out)
    orders = [message for topic, message in itertools.islice(valid(agent, Random(1)), 18) if topic == COMMANDS]
    with monkeypatch.context() as broken, structlog.testing.capture_logs() as logged:
        broken.setattr(agent.node, "handle", raise_bug)
        for order in orders[:2]:
            agent.link.hear(COMMANDS, order)
    assert agent.metrics.registry.get_sample_value(REFUSED, {"kind": "failed"}) == 2
    (line,) = [line for line in logged if line["event"] == "message_failed"]
    assert (line["log_level"], line["topic"], str(line["exc_info"])) == ("error", COMMANDS, "a bug")
    assert not carried_out
    for order in orders[2:]:
        agent.link.hear(COMMANDS, order)
    assert carried_out
    outbox.close()


def raise_bug(_event: events.AgentEvent, _now: float) -> NoReturn:
    raise LookupError("a bug")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
