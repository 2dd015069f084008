"""A lying member of groups wastes the time of some runs, and harms no honest node."""

import itertools
import resource
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faults import muster_mischief
from tests.hostile.liar import Greeting, Guest, Lie, LyingStore, close_at_once, send_garbage
from tests.hostile.member import LyingMember, Story
from tests.hostile.world import HONEST, HOSTILE, MEETING_S, Attacker, World
from tests.waiting import wait_for

from muster.check import Scope, describe
from muster.config import Config, Settings
from muster.model import MOST_DEVICES, Finding, Severity, Verdict

VICTIMS = ("n2", "n3", "n5")
"""Three are enough: each has a partner with which it passes."""

CRASHES = {"run.killed", "run.exited", "run.out_of_memory"}

MOST_BYTES = 6 << 30
"""Memory of an agent with all its processes: the limit of a run, two resident children, and the agent itself."""


class MemoryWatch(threading.Thread):
    """Measures often how much memory each agent uses with all its processes; `end` gives the maximum in bytes."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(daemon=True)
        assert Path("/proc/thread-self/children").exists(), "this kernel does not list the children of a process"
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
    """The memory of a process and all below it that they share with no other."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return 0
    children = (child for thread in threads for child in _children(thread))
    return (resident - shared) * resource.getpagesize() + sum(map(_held_bytes, children))


def _children(thread: Path) -> list[int]:
    """From the kernel's own list: to look for them among all processes so often would cost a core."""
    try:
        return [int(child) for child in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # the thread has just ended
        return []


@contextmanager
def unharmed(world: World) -> Iterator[None]:
    """Checks that no honest node is harmed: agents keep running, in bounded memory, and end free and not convicted."""
    wait_for(lambda: not world.accused(), "every honest node to be in service")
    before = {node: world.agents[node].pid for node in HONEST}
    watch = MemoryWatch([*before.values()])
    watch.start()
    try:
        yield
    finally:
        most = watch.end()
    assert {node: world.agents[node].pid for node in HONEST if world.agents[node].runs} == before
    assert world.coordinator.runs
    assert most < MOST_BYTES, f"{most / 2**30:.1f} GiB"
    world.wait_until_free(*HONEST)
    world.wait_until_delivered(*HONEST)  # a run is reported apart from its group, and may come later
    assert world.accused() == []


def announcing(size: int) -> Lie:
    """Replaces the introduction of rank 0: announces `size` bytes, and sends bytes until the client leaves."""

    def lie(guest: Guest, key: str) -> bytes | None:
        if key != "rank/0":
            return None
        guest.connection.sendall(struct.pack("<Q", size))
        while True:
            guest.connection.sendall(bytes(1 << 20))

    return lie


def store(lie: Lie | None = None, greet: Greeting | None = None) -> Callable[[], LyingStore]:
    """Makes stores of a rank 0 whose introduction has the wrong shape."""

    def serve() -> LyingStore:
        served = LyingStore(lie, greet)
        served.kept["rank/0"] = b"[]"
        return served

    return serve


def finding(code: str, severity: Severity = Severity.UNKNOWN) -> Finding:
    return Finding(code=code, summary="a lie", severity=severity, device=0)


NO_STORE = store(greet=close_at_once)

LIES: dict[str, tuple[str, Story, Callable[[], LyingStore]]] = {
    "has two billion ranks": ("meeting", Story(ranks=2147483000), NO_STORE),
    "has as many ranks as a message takes": ("reunion", Story(ranks=MOST_DEVICES), store()),
    "is at no host": ("meeting", Story(address="http://127.0.0.1/"), NO_STORE),
    "is everywhere": ("meeting", Story(address="0.0.0.0"), NO_STORE),
    "closes": ("reunion", Story(), NO_STORE),
    "sends garbage": ("meeting", Story(), store(greet=send_garbage)),
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


@pytest.mark.parametrize(
    "lie",
    [pytest.param(lie, marks=[pytest.mark.torch] if check == "reunion" else []) for lie, (check, _, _) in LIES.items()],
)
def test_a_lie_in_a_group_harms_no_node(world, attacker, tmp_path, lie):
    """Ranks of honest nodes fail with the lying node, but none of them crashes, stays behind or fills its node."""
    check, story, serve = LIES[lie]
    with unharmed(world), lying(world, attacker, story, serve) as liar:
        sweep = sweep_with_liar(world, check, tmp_path)
    assert liar.invited
    assert convicted(sweep) <= {HOSTILE}
    assert names_the_liar(sweep)
    for record in members(sweep):
        assert record["node"] == HOSTILE or not crashes(record), record


def test_lies_in_sweep_after_sweep_harm_no_node(world, attacker, tmp_path):
    """Repeated crashes with the same partner never convict an honest node."""
    check, story, serve = LIES["says that it crashed"]
    with unharmed(world), lying(world, attacker, story, serve):
        sweeps = [sweep_with_liar(world, check, tmp_path) for _ in range(4)]
    for sweep in sweeps:
        assert convicted(sweep) <= {HOSTILE}
        assert names_the_liar(sweep)
    for record in itertools.chain.from_iterable(map(members, sweeps)):
        assert record["node"] == HOSTILE or not crashes(record), record


@contextmanager
def lying(world: World, attacker: Attacker, story: Story, serve: Callable[[], LyingStore]) -> Iterator[LyingMember]:
    """The hostile node takes part in groups while the context lasts. It announces the checks of an honest node."""
    known = muster_mischief.muster_checks(Config(Settings()))
    checks = tuple(
        describe(check).model_copy(update={"timeout_s": MEETING_S}) for check in known if check.scope is Scope.GROUP
    )
    with serve() as own_store, LyingMember(attacker, story, own_store.port, checks) as liar:
        world.wait_until_there(HOSTILE)
        yield liar


def sweep_with_liar(world: World, check: str, book: Path) -> dict[str, Any]:
    """Sweeps over the lying node and its victims; gives the sweep when it has ended."""
    params = {"book": str(book)} if check == "meeting" else {}
    sweep = world.api.post("sweeps", body={"check": check, "nodes": [HOSTILE, *VICTIMS], "params": params})["id"]
    return world.ended_sweep(sweep)


def members(sweep: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The records of all members of all groups."""
    for round_ in sweep["rounds"]:
        for group in round_["groups"]:
            yield from group["places"]


def convicted(sweep: dict[str, Any]) -> set[str]:
    """The nodes that the sweep convicts."""
    return {culprit["node"] for culprit in sweep["failed_nodes"]}


def names_the_liar(sweep: dict[str, Any]) -> bool:
    """Whether the sweep suspects or convicts the lying node, and clears all its victims."""
    suspected = convicted(sweep) | {*sweep["inconclusive"]}
    return HOSTILE in suspected and {*sweep["cleared_nodes"]} >= {*VICTIMS}


def crashes(record: dict[str, Any]) -> set[str]:
    """The codes of the member's findings that count as a crash of its own."""
    return CRASHES & {found["code"] for found in record["findings"]}
