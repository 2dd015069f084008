"""A member of groups that lies: it costs the time of some runs, and nobody who is honest comes to harm."""

import itertools
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.faults import muster_mischief
from tests.hostile.liar import Gone, Guest, Lie, LyingStore
from tests.hostile.member import LyingMember, Story
from tests.hostile.world import HONEST, HOSTILE, MEETING_S, Attacker, World
from tests.waiting import wait_for

from muster.check import Scope, describe
from muster.config import Config, Settings
from muster.model import MOST_DEVICES, Finding, Severity, Verdict

VICTIMS = ("n2", "n3", "n5")
"""Three are enough: each has a partner that passes with it."""

CRASHES = {"run.killed", "run.exited", "run.out_of_memory"}

MOST_BYTES = 6 << 30
"""Of memory, for an agent with all that it started: what a run may take, two resident children, and itself."""


class Watch(threading.Thread):
    """The most memory that any honest agent has held with all its processes, in bytes, looked at often."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(daemon=True)
        self._pids = pids
        self._over = threading.Event()
        self.most = 0

    def run(self) -> None:
        while not self._over.wait(0.05):
            self.most = max([self.most, *map(_held_bytes, self._pids)])

    def end(self) -> int:
        self._over.set()
        self.join()
        return self.most


def _held_bytes(pid: int) -> int:
    held = 0
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        try:
            memory = process.memory_info()
        except psutil.NoSuchProcess:
            continue
        held += memory.rss - memory.shared
    return held


@contextmanager
def unharmed(world: World) -> Iterator[None]:
    """Agents stay who they are, their memory stays bounded, and whatever they held is released."""
    wait_for(lambda: not world.accused(), "every honest node to be in service")
    before = {node: world.agents[node].pid for node in HONEST}
    watch = Watch([*before.values()])
    watch.start()
    try:
        yield
    finally:
        most = watch.end()
    assert {node: world.agents[node].pid for node in HONEST if world.agents[node].runs} == before
    assert world.coordinator.runs
    assert most < MOST_BYTES, f"{most / 2**30:.1f} GiB"
    world.wait_until_free(*HONEST)
    assert world.accused() == []


def announcing(size: int) -> Lie:
    """In place of what rank 0 says of itself: that it takes so many bytes, and as many as anybody wants of them."""

    def lie(guest: Guest, key: str) -> bytes | None:
        if key != "rank/0":
            return None
        guest.connection.sendall(struct.pack("<Q", size))
        while True:
            guest.connection.sendall(bytes(1 << 20))

    return lie


def garbage(connection: socket.socket) -> None:
    connection.sendall(os.urandom(1 << 16))
    time.sleep(1.0)
    raise Gone


def closed(_connection: socket.socket) -> None:
    raise Gone


def store(lie: Lie | None = None, greet: Callable[[socket.socket], None] | None = None) -> Callable[[], LyingStore]:
    """Makes a rank 0 that has introduced itself, as something else."""

    def serve() -> LyingStore:
        served = LyingStore(lie, greet)
        served.kept["rank/0"] = b"[]"
        return served

    return serve


def finding(code: str, severity: Severity = Severity.UNKNOWN) -> Finding:
    return Finding(code=code, summary="so it says", severity=severity, device=0)


NO_STORE = store(greet=closed)

LIES: dict[str, tuple[str, Story, Callable[[], LyingStore]]] = {
    "has two billion ranks": ("meeting", Story(ranks=2147483000), NO_STORE),
    "has as many ranks as a message takes": ("reunion", Story(ranks=MOST_DEVICES), store()),
    "is at no host": ("meeting", Story(address="http://127.0.0.1/"), NO_STORE),
    "is everywhere": ("meeting", Story(address="0.0.0.0"), NO_STORE),
    "closes": ("reunion", Story(), NO_STORE),
    "speaks something else": ("meeting", Story(), store(greet=garbage)),
    "announces 8 GiB and sends them": ("reunion", Story(), store(announcing(8 << 30))),
    "speaks for its partners": ("meeting", Story(findings=(finding("run.killed"),), speaks_for=(0, 1, 2)), NO_STORE),
    "says that it crashed": ("meeting", Story(verdict=Verdict.UNKNOWN, findings=(finding("run.killed"),)), NO_STORE),
    "accuses others": (
        "meeting",
        Story(verdict=Verdict.FAIL, findings=(finding("meeting.wrong", Severity.ERROR),)),
        NO_STORE,
    ),
    "says nothing at the end": ("meeting", Story(ends=False), NO_STORE),
    "is never ready": ("meeting", Story(is_ready=False), NO_STORE),
    "boasts": ("meeting", Story(metrics={"rate": 1e29}), NO_STORE),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_a_group_harms_no_node(world, attacker, tmp_path, lie):
    """Ranks of honest nodes fail with the liar, but none of them crashes, is left behind or fills its node."""
    check, story, serve = LIES[lie]
    with unharmed(world), lying(world, attacker, story, serve) as liar:
        sweep = lied_to(world, check, tmp_path)
    assert liar.invited
    assert blamed(sweep) <= {HOSTILE}
    assert names_the_liar(sweep)
    for record in members(sweep):
        assert record["node"] == HOSTILE or not crashes(record), record


def test_lies_in_sweep_after_sweep_harm_no_node(world, attacker, tmp_path):
    """Suspicion that grows with every crash beside the same partner grows against nobody honest."""
    check, story, serve = LIES["says that it crashed"]
    with unharmed(world), lying(world, attacker, story, serve):
        sweeps = [lied_to(world, check, tmp_path) for _ in range(4)]
    for sweep in sweeps:
        assert blamed(sweep) <= {HOSTILE}
        assert names_the_liar(sweep)
    for record in itertools.chain.from_iterable(map(members, sweeps)):
        assert record["node"] == HOSTILE or not crashes(record), record


@contextmanager
def lying(world: World, attacker: Attacker, story: Story, serve: Callable[[], LyingStore]) -> Iterator[LyingMember]:
    """The hostile node takes part in groups while the context lasts, with the checks of an honest one."""
    known = muster_mischief.muster_checks(Config(Settings()))
    checks = tuple(
        describe(check).model_copy(update={"timeout_s": MEETING_S}) for check in known if check.scope is Scope.GROUP
    )
    with serve() as own_store, LyingMember(attacker, story, own_store.port, checks) as liar:
        world.wait_until_there(HOSTILE)
        yield liar


def lied_to(world: World, check: str, book: Path) -> dict[str, Any]:
    """A sweep over the liar and its victims, once it has ended."""
    params = {"book": str(book)} if check == "meeting" else {}
    sweep = world.api.post("sweeps", body={"check": check, "nodes": [HOSTILE, *VICTIMS], "params": params})["id"]
    return world.ended_sweep(sweep)


def members(sweep: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in sweep["rounds"]:
        for group in each["groups"]:
            yield from group["places"]


def blamed(sweep: dict[str, Any]) -> set[str]:
    """The nodes that a sweep convicts."""
    return {culprit["node"] for culprit in sweep["failed_nodes"]}


def names_the_liar(sweep: dict[str, Any]) -> bool:
    """Whether the sweep says that something is wrong with it, and that nothing is with its victims."""
    suspected = blamed(sweep) | {*sweep["inconclusive"]}
    return HOSTILE in suspected and {*sweep["cleared_nodes"]} >= {*VICTIMS}


def crashes(record: dict[str, Any]) -> set[str]:
    """What a member of a group reports that would count as a crash of its own."""
    return CRASHES & {found["code"] for found in record["findings"]}
