"""The coordinator's decisions and store handle odd messages: they raise nothing but RemoteError, and can be restored.

The suite sends some thousand; `MUSTER_FUZZ=1000000 pytest tests/hostile/test_fuzz_coordinator.py` sends a million.
`MUSTER_FUZZ_SEED` chooses other ones.
"""

import contextlib
import itertools
import json
import os
import time
from collections import Counter, deque
from itertools import islice
from random import Random
from typing import Any

import pytest
from tests.coordinator.fleets import CHECKS, head, sweep
from tests.hostile.mutation import messages, mutate

from muster.config import Settings
from muster.errors import Refused, RemoteError
from muster.model import Inventory
from muster.quarantine_settings import QuarantineSettings
from muster.wire.codec import GROUP_REPLY, INVENTORY, PRESENCE, REPORT
from muster.wire.messages import InventoryReport, Presence
from muster.wire.topics import FROM_NODE, NodeTopic
from muster_coordinator.evidence.node_events import event_of
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    Announce,
    FleetCommand,
    FleetEvent,
    InventorySeen,
    PresenceSeen,
    SendCommand,
    Ticked,
)
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows
from muster_coordinator.store.store import Store

COUNT = int(os.environ.get("MUSTER_FUZZ", "4000"))
SEED = int(os.environ.get("MUSTER_FUZZ_SEED", "20261123"))
BATCH = 500
VALID, NEW = 50, 0.1
"""How many valid messages of each kind are mutated, and the share of steps that replace one by a new one."""

SLOWEST_S = 5.0
"""Limit for one message, on a machine that does other work too."""

NODES = ("n1", "n2", "n3", "n4")
RULES = QuarantineSettings.model_validate({"mode": "dry-run", "budget": {"share": "50%"}})


def new_fleet(epoch: int) -> Fleet:
    return Fleet(name="lab", epoch=epoch, rules=RULES, policy=Policy(shipped_rows()), bytes_a_day=1e12)


class Hostile:
    """The messages of n1: valid ones of every kind, and mutations of them."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._groups: list[str] = ["g"]
        self._sequence = itertools.count(1)
        own: dict[str, Any] = {"node": "n1", "after": 0, "seq": self._sequence.__next__, "stream": self._stream}
        sources = {
            NodeTopic.PRESENCE: messages(PRESENCE, self._random, **own),
            NodeTopic.INVENTORY: messages(INVENTORY, self._random, node="n1", name=self._check),
            NodeTopic.REPORT: messages(REPORT, self._random, **own, check=self._check),
            NodeTopic.GROUP: messages(GROUP_REPLY, self._random, node="n1", group=self._group),
        }
        self._valid = {topic: deque(islice(source, VALID)) for topic, source in sources.items()}
        self._sources = sources

    def join(self, command: SendCommand) -> None:
        """Notes a group to which the node is invited."""
        group = getattr(command.command, "group", None)
        if command.node == "n1" and group is not None:
            self._groups = [*self._groups[-3:], group]

    def next_message(self) -> tuple[NodeTopic, bytes]:
        topic = self._random.choice(FROM_NODE)
        if self._random.random() < NEW:
            self._valid[topic].popleft()
            self._valid[topic].append(next(self._sources[topic]))
        payload = self._random.choice(self._valid[topic])
        for _ in range(self._random.choice((0, 1, 1, 2))):
            payload = mutate(payload, self._random)
        return topic, payload

    def _stream(self) -> str:
        return f"s{self._random.randrange(40)}"

    def _check(self) -> str:
        return self._random.choice(("gemm", "collective", "plugins", "other"))

    def _group(self) -> str:
        return self._random.choice(self._groups)


def announce_all(now: float) -> list[FleetEvent]:
    """Every node is online and announces itself again, also n1: its mutated messages may have changed that."""
    online: list[FleetEvent] = [PresenceSeen(Presence(**head(node), online=True)) for node in NODES]
    about = (InventoryReport(**head(node), inventory=Inventory(), checks=CHECKS) for node in NODES)
    return [*online, *map(InventorySeen, about), Ticked()]


async def test_every_message_is_accepted_or_refused(tmp_path, record_property):
    """Each raises nothing but RemoteError, and the next coordinator can read everything that was stored."""
    hostile, refused, commands = Hostile(SEED), Counter[str](), list[FleetCommand]()
    store = await Store.open(Settings(data_dir=tmp_path))
    fleet, now, slowest = new_fleet(1), 1_800_000_000.0, 0.0
    began = time.perf_counter()
    try:
        for number in range(COUNT):
            if number % BATCH == 0:
                commands += begin_sweep(fleet, number, now)
            now += 0.01
            topic, payload = hostile.next_message()
            at = time.perf_counter()
            try:
                commands += fleet.handle(event_of(topic, "n1", payload), now)
            except RemoteError as error:
                refused[error.kind] += 1
            slowest = max(slowest, time.perf_counter() - at)
            if number % BATCH == BATCH - 1:
                for command in commands:
                    if isinstance(command, SendCommand):
                        hostile.join(command)
                    elif isinstance(command, Announce):
                        json.loads(command.payload.model_dump_json(), parse_constant=pytest.fail)
                await store.write(commands)
                commands.clear()
        rate = COUNT / (time.perf_counter() - began)
        restored = new_fleet(2)
        restored.restore(await store.saved(), now)
    finally:
        await store.close()
    figures = {"messages_per_s": round(rate), "slowest_s": round(slowest, 3), "refused": dict(refused)}
    record_property("figures", figures)
    print(figures)
    assert set(restored.names) == set(NODES)
    assert fleet.counts.runs > COUNT / 50
    assert COUNT / 10 < sum(refused.values()) < COUNT
    assert slowest < SLOWEST_S


def begin_sweep(fleet: Fleet, number: int, now: float) -> list[FleetCommand]:
    """Brings all nodes online and begins a sweep over them."""
    commands = [command for event in announce_all(now) for command in fleet.handle(event, now)]
    with contextlib.suppress(Refused):  # n1 may just have announced that it lacks the check
        commands += fleet.handle(sweep(f"sweep-{number}", nodes=NODES), now)
    return commands
