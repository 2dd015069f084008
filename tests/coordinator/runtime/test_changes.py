"""Viewers of the whole fleet: a snapshot made once for all, and frames that nobody waits for."""

import asyncio
import json
from contextlib import ExitStack
from functools import partial
from random import Random

import pytest

from muster.model import Device, Health, ServiceState, Severity, Topology
from muster_coordinator.model.fleet_columns import FleetNumbers
from muster_coordinator.model.nodes import NodeFinding, NodeView
from muster_coordinator.runtime.changes import MOST_VIEWERS, ChangeStream
from muster_coordinator.views.node_rows import columns
from muster_coordinator.views.versioned_nodes import MOST_ROWS

NUMBERS = FleetNumbers(
    nodes=3,
    health={Health.HEALTHY: 3},
    service={ServiceState.IN_SERVICE: 3},
    lost=0,
    mode="enforce",
    away=0,
    limit=1,
    held=0,
    frozen=0,
    alarms=0,
    catching_up=0,
    waiting_runs=0,
    sweeps=0,
    sweeps_begun=0,
    sweeps_ended=0,
    is_connected=True,
    is_overloaded=False,
    failing_actors=(),
    unheard=0,
)
GPUS = tuple(Device(index=index, uuid=f"u{index}", model="NVIDIA H100 80GB HBM3", memory_bytes=1) for index in range(8))


def node(name, **more):
    fields = {"health": Health.HEALTHY, "service": ServiceState.IN_SERVICE, "lost": False, "last_seen": 1.0}
    return NodeView(**{"name": name, "devices": GPUS, "findings": (), **fields, **more})


class Source:
    """Nodes and numbers that a test can change."""

    def __init__(self, *nodes):
        self.nodes = {each.name: each for each in nodes}
        self.numbers = NUMBERS
        self.now = 1e9

    def stream(self):
        return ChangeStream(
            7,
            names=lambda: sorted(self.nodes),
            view=self.nodes.get,
            numbers=lambda: self.numbers,
            clock=lambda: self.now,
        )


def never():
    raise AssertionError("was cut off")


def parsed(frame):
    """Id, kind and data of an event."""
    given, kind, data = (line.partition(": ")[2] for line in frame.decode().splitlines() if line)
    return given, kind, json.loads(data)


async def taken(viewer):
    async with asyncio.timeout(20):
        return parsed(await viewer.take())


async def test_a_viewer_that_joins_with_its_snapshot_gets_what_changed_since():
    """A change between the snapshot and the connection is not lost, and the frame is in the same columns."""
    source = Source(node("n1"), node("n2"))
    stream = source.stream()
    snapshot = await stream.snapshot()
    stream.note(node("n2", health=Health.FAILED))
    with stream.watch(snapshot.id, never) as viewer:
        given, kind, data = await taken(viewer)
        whole = json.loads((await stream.snapshot()).body)
    assert (given, kind, data["since"], data["version"]) == ("7-2", "change", 1, 2)
    assert (data["nodes"]["name"], data["nodes"]["health"], data["gone"]) == (["n2"], [4], [])
    assert data.keys() - whole.keys() == {"since", "gone"}
    assert (whole["version"], whole["nodes"]["name"], whole["nodes"]["health"]) == (2, ["n1", "n2"], [1, 4])


@pytest.mark.parametrize("last_id", [None, "", "6-1", "7-99", "7", "x", "7--1"])
async def test_a_viewer_without_a_known_version_needs_a_snapshot(last_id):
    """If it has none, of another coordinator, from the future or invented; changes follow."""
    stream = Source(node("n1")).stream()
    await stream.snapshot()
    with stream.watch(last_id, never) as viewer:
        assert await taken(viewer) == ("7-1", "reset", {"epoch": 7, "version": 1})
        stream.note(node("n1", health=Health.FAILED))
        assert (await taken(viewer))[:2] == ("7-2", "change")


async def test_a_viewer_that_missed_too_much_needs_a_snapshot():
    """It has more changes than a snapshot is worth."""
    stream = Source(node("n1")).stream()
    snapshot = await stream.snapshot()
    with stream.watch(snapshot.id, never) as viewer:
        for number in range(MOST_ROWS + 1):
            stream.note(node(f"m{number}"))
        assert (await taken(viewer))[1] == "reset"


async def test_a_slow_viewer_gets_all_changes_in_one_frame():
    """And delays no other, which got each of them. Nothing is kept for it."""
    stream = Source(node("n1"), node("n2")).stream()
    snapshot = await stream.snapshot()
    with stream.watch(snapshot.id, never) as slow, stream.watch(snapshot.id, never) as quick:
        for name in ("n1", "n2"):
            stream.note(node(name, health=Health.FAILED))
            assert (await taken(quick))[2]["nodes"]["name"] == [name]
        _, _, data = await taken(slow)
        assert (data["since"], data["version"], sorted(data["nodes"]["name"])) == (1, 3, ["n1", "n2"])


async def test_frames_and_snapshots_are_encoded_once(monkeypatch):
    """For all viewers of the same version."""
    encoded = []

    def counted(rows, at):
        encoded.append(len(rows))
        return columns(rows, at)

    monkeypatch.setattr("muster_coordinator.runtime.changes.columns", counted)
    stream = Source(node("n1"), node("n2")).stream()
    snapshots = await asyncio.gather(*(stream.snapshot() for _ in range(50)))
    assert (len({id(each) for each in snapshots}), encoded) == (1, [2])
    with ExitStack() as watching:
        viewers = [watching.enter_context(stream.watch(snapshots[0].id, never)) for _ in range(50)]
        stream.note(node("n1", lost=True))
        frames = [await viewer.take() for viewer in viewers]
    assert (len({id(frame) for frame in frames}), encoded) == (1, [2, 1])


async def test_numbers_of_the_fleet_change_without_a_node():
    """The broker goes away: viewers are told within a second or so."""
    source = Source(node("n1"))
    stream = source.stream()
    with stream.watch((await stream.snapshot()).id, never) as viewer:
        source.numbers = NUMBERS.model_copy(update={"is_connected": False})
        _, kind, data = await taken(viewer)
    assert (kind, data["nodes"]["name"], data["fleet"]["is_connected"]) == ("change", [], False)


async def test_a_node_that_was_forgotten_is_gone():
    """From the snapshot, too."""
    source = Source(node("n1"), node("n2"))
    stream = source.stream()
    with stream.watch((await stream.snapshot()).id, never) as viewer:
        stream.drop("n1")
        assert (await taken(viewer))[2]["gone"] == ["n1"]
    assert json.loads((await stream.snapshot()).body)["nodes"]["name"] == ["n2"]


async def test_one_viewer_too_many_cuts_off_the_oldest():
    """Silent viewers cannot keep a new one out."""
    stream, cut = Source(node("n1")).stream(), list[int]()
    with ExitStack() as watching:
        viewers = [watching.enter_context(stream.watch(None, partial(cut.append, n))) for n in range(MOST_VIEWERS + 2)]
        assert (cut, stream.viewers) == ([0, 1], MOST_VIEWERS)
        assert await viewers[0].take() is None
        stream.close()
        assert await viewers[2].take() is None


def instances(count, random):
    """Nodes with names of cloud instances in racks of 16 whose names are hashes; each changed within the last month."""
    pools = [f"gke-train-h100-a3mega-pool-{number}-{random.randbytes(4).hex()}" for number in range(count // 1_000)]
    blocks = [random.randbytes(16).hex() for _ in range(16)]
    racks = [
        Topology(block=random.choice(blocks), rack=random.randbytes(16).hex(), leaf=f"leaf-{number // 2:03}")
        for number in range(count // 16)
    ]
    for number in range(count):
        name = f"{random.choice(pools)}-{''.join(random.choices('abcdefghijklmnopqrstuvwxyz0123456789', k=5))}"
        since = 1e9 - random.random() * 30 * 86_400
        xid = random.choice((13, 31, 48, 63, 74, 79, 94, 95))
        found = NodeFinding(
            code=random.choice(("kernel_log.xid", "gemm.slow", "nvml.ecc")),
            summary="",
            severity=Severity.ERROR,
            check="c",
            run="r",
            since=since,
            evidence={"xid": xid},
        )
        more = {"health": random.choice(list(Health)), "findings": (found,)} if random.random() < 0.05 else {}
        yield node(name, topology=racks[number // 16], **more), since


async def test_a_snapshot_of_ten_thousand_nodes_is_small():
    """Under 100 KB for a browser, at worst: every node has a random name and changed at a time of its own."""
    source = Source()
    stream = source.stream()
    for made, source.now in instances(10_000, Random(1)):
        stream.note(made)
    source.now = 1e9
    snapshot = await stream.snapshot()
    assert len(json.loads(snapshot.body)["nodes"]["name"]) == 10_000
    assert len(snapshot.compressed) < 100_000
