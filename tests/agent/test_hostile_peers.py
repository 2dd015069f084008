"""A hostile peer makes a rank on an honest node fail. The rank says who may be the cause, and nothing else happens."""

import faulthandler
import json
import socket
import struct
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.hostile.liar import Gone, Greeting, Guest, Lie, LyingStore, close_at_once, send_garbage, value

from muster.check import Scope
from muster.config import Config, Settings
from muster.model import Measurement, Verdict
from muster_agent.decide.orders import RankPlace
from muster_plugins.checks.collective import check as collective

pytestmark = pytest.mark.torch

LIMIT_BYTES = 3 << 30
"""Memory limit of a rank; torch needs less than a third."""

INTRODUCTION = json.dumps(["n1", 0, "host", "cpu"]).encode()


@pytest.fixture(scope="module", autouse=True)
def torch_at_hand():
    """Loads torch once: children are forked from this process, and would take seconds to load it."""
    import torch  # noqa: F401, PLC0415


@pytest.fixture
def victim(running, monkeypatch):
    """Runs a check as rank 1 of two, with rank 0 at a port of this host; gives the result of rank 1."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")

    async def meet(port: int, timeout_s: float = 60.0) -> Any:
        check = collective_check()
        place = RankPlace(
            rank=1, local_rank=0, local_world_size=1, world_size=2, master_addr="127.0.0.1", master_port=port
        )
        async with running(check, memory_limit_bytes=LIMIT_BYTES) as runs:
            order = {"places": (place,), "group": "g", "timeout_s": timeout_s, "params": check.params(timeout_s=3.0)}
            run = await runs.start(check, **order)
            runs.runner.go(run)
            (rank,) = (await runs.ended()).ranks
            return rank

    return meet


def about_rank_0(content: bytes) -> Lie:
    """Replaces the introduction of rank 0 with these bytes."""
    return lambda _guest, key: content if key == "rank/0" else None


def leave_after_introduction(_guest: Guest, key: str) -> bytes | None:
    """The true value while the ranks introduce themselves; then the connection closes."""
    if key.startswith("rank/"):
        return None
    raise Gone


GREETINGS = {"closes at once": close_at_once, "sends garbage": send_garbage}
LIES: dict[str, Lie] = {
    "announces 4 EiB": about_rank_0(struct.pack("<Q", 1 << 62)),
    "announces 8 GiB": about_rank_0(struct.pack("<Q", 8 << 30) + bytes(1000)),
    "is no JSON": about_rank_0(value(b"\xff\xfe{")),
    "is deep": about_rank_0(value(b"[" * 100_000)),
    "has another shape": about_rank_0(value(b'{"n1": 0}')),
    "has a long name": about_rank_0(value(json.dumps(["n" * 100_000, 0, "host", "cpu"]).encode())),
    "is huge": about_rank_0(value(b" " * (64 << 20))),
    "leaves after the introduction": leave_after_introduction,
}


@pytest.mark.parametrize("greet", GREETINGS.values(), ids=GREETINGS)
async def test_a_rank_0_without_a_store_makes_the_rank_fail(victim, greet: Greeting):
    """With `run.raised` and the address of rank 0."""
    with LyingStore(greet=greet) as store:
        rank = await victim(store.port)
    assert_names_rank_0(rank, store.port)


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_lying_store_makes_the_rank_fail(victim, lie: Lie):
    """With `run.raised`, and never with `run.out_of_memory`, whatever the store sends and however much."""
    with LyingStore(lie) as store:
        store.kept["rank/0"] = INTRODUCTION
        rank = await victim(store.port)
    assert_names_rank_0(rank, store.port)


async def test_a_rank_0_that_never_answers_is_a_timeout(victim):
    """The agent kills the rank at its deadline."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        rank = await victim(listener.getsockname()[1], timeout_s=5.0)
    assert [finding.code for finding in rank.findings] == ["run.timeout"]


async def test_a_peer_that_sends_more_than_expected_makes_the_rank_fail(running, check, places):
    """Gloo throws in its own thread, which aborts the process; this is `run.raised`, not a crash of the victim."""
    victims_elements, peers_elements = 16, 1 << 20

    def measure(_params: Any, context: Any) -> Measurement:
        import torch  # noqa: PLC0415
        import torch.distributed as dist  # noqa: PLC0415

        faulthandler.disable()  # pytest's, which would write to its output
        place = context.rendezvous()
        store = dist.TCPStore(  # type: ignore[attr-defined]
            *(place.master_addr, place.master_port, 2, place.rank == 0),
            master_listen_fd=place.listen_fd,
            use_libuv=False,  # Debian's torch has none
        )
        dist.init_process_group("gloo", store=store, rank=place.rank, world_size=2)
        dist.all_reduce(torch.ones(peers_elements if place.rank == 0 else victims_elements))
        return Measurement()

    mismatched = check(measure, scope=Scope.GROUP)
    listener = socket.create_server(("127.0.0.1", 0))
    async with running(mismatched) as runs:
        run = await runs.start(mismatched, listener=listener, places=places(2, listener.getsockname()[1]), group="g")
        runs.runner.go(run)
        victim = (await runs.ended()).ranks[1]
    (finding,) = victim.findings
    assert (finding.code, finding.evidence["signal"]) == ("run.raised", "SIGABRT")
    assert "gloo::EnforceNotMet" in finding.summary


SECRET = "ab" * 32

INTRUDER = """
import socket, struct, sys, time
def text(content): return struct.pack("<Q", len(content)) + content
print("ready", flush=True)
while True:
    try:
        with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=2) as store:
            store.sendall(bytes([0]) + struct.pack("<I", 0x3C85F7CE))
            while True:
                store.sendall(100 * b"".join(bytes([1]) + text(b"/rank/%d" % rank) + text(b"[]") for rank in range(2)))
    except OSError:
        time.sleep(0.01)
"""
"""Writes a false introduction of every rank into the store, again and again, in the protocol of torch's TCPStore."""


@pytest.mark.parametrize(("secret", "verdicts"), [(SECRET, {Verdict.PASS}), (None, {Verdict.UNKNOWN})])
async def test_a_stranger_at_the_port_spoils_no_group_with_a_secret(running, places, monkeypatch, secret, verdicts):
    """Without a secret, as with older agents, it does."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    check = collective_check()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    group = tuple(replace(place, secret=secret) for place in places(2, port))
    params = check.params(timeout_s=3.0, size_bytes="64K")
    with subprocess.Popen([sys.executable, "-c", INTRUDER, str(port)], stdout=subprocess.PIPE) as intruder:
        assert intruder.stdout is not None
        assert intruder.stdout.readline() == b"ready\n"
        async with running(check, memory_limit_bytes=LIMIT_BYTES) as runs:
            order = {"places": group, "group": "g", "params": params, "timeout_s": 20.0}
            run = await runs.start(check, listener=listener, **order)
            await runs.until("ready")
            runs.runner.go(run)
            ended = await runs.ended()
        intruder.kill()
    assert {rank.verdict for rank in ended.ranks} == verdicts, ended


@pytest.mark.parametrize(("sent", "strangers"), [(b"GET / HTTP/1.1\r\n" * 9, ["127.0.0.1"]), (b"", None)])
async def test_rank_0_names_the_strangers_that_came_to_a_group_that_failed(running, sent, strangers):
    """Rank 1 never comes. Who only connects is no stranger, but an agent of a member that tries the port."""
    check = collective_check()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    place = RankPlace(
        rank=0,
        local_rank=0,
        local_world_size=1,
        world_size=2,
        master_addr="127.0.0.1",
        master_port=port,
        secret=SECRET,
    )
    async with running(check, memory_limit_bytes=LIMIT_BYTES) as runs:
        order = {"places": (place,), "group": "g", "params": check.params(timeout_s=1.0)}
        run = await runs.start(check, listener=listener, **order)
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(sent)
            runs.runner.go(run)
            (rank,) = (await runs.ended()).ranks
    (finding,) = rank.findings
    assert (finding.code, finding.evidence.get("strangers")) == ("run.raised", strangers), finding


def collective_check() -> Any:
    config = Config(Settings())
    collective.muster_configure(config)
    (check,) = collective.muster_checks(config)
    return check


def assert_names_rank_0(rank: Any, port: int) -> None:
    (finding,) = rank.findings
    assert finding.code == "run.raised", finding
    assert finding.summary.startswith("PeerError: ")
    assert finding.evidence["met"] == {"rank": 1, "world_size": 2, "rank_0": f"127.0.0.1:{port}"}
    named = {key: finding.evidence.get(key) for key in ("meeting", "peer_rank", "peers")}
    assert named["meeting"] == f"127.0.0.1:{port}" or named["peer_rank"] == 0 or named["peers"] == ["n1"], finding
