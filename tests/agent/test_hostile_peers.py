"""What a hostile peer does to a rank on an honest node: the rank fails, says whose doing it may be, and no more."""

import faulthandler
import json
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest
from tests.hostile.liar import Gone, Guest, Lie, LyingStore, value

from muster.check import Scope
from muster.config import Config, Settings
from muster.model import Measurement
from muster_agent.orders import Place
from muster_plugins.collective import check as collective

LIMIT_BYTES = 3 << 30
"""Of a rank's memory: torch takes less than one of it."""

INTRODUCTION = json.dumps(["n1", 0, "host", "cpu"]).encode()


@pytest.fixture(scope="module", autouse=True)
def torch_at_hand():
    """Children are forked with it, so that not every one takes seconds to load it."""
    pytest.importorskip("torch")


@pytest.fixture
def victim(running, monkeypatch):
    """Runs a check as rank 1 of two, with rank 0 at a port of this host; gives what became of that rank."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")

    async def meet(port: int, timeout_s: float = 60.0) -> Any:
        check = the_collective()
        place = Place(rank=1, local_rank=0, local_world_size=1, world_size=2, master_addr="127.0.0.1", master_port=port)
        async with running(check, memory_limit_bytes=LIMIT_BYTES) as runs:
            order = {"places": (place,), "group": "g", "timeout_s": timeout_s, "params": check.params(timeout_s=3.0)}
            run = await runs.start(check, **order)
            runs.runner.go(run)
            (rank,) = (await runs.ended()).ranks
            return rank

    return meet


def about_rank_0(content: bytes) -> Lie:
    """In place of what rank 0 says of itself, these bytes."""
    return lambda _guest, key: content if key == "rank/0" else None


def garbage(connection: socket.socket) -> None:
    connection.sendall(os.urandom(1 << 16))
    connection.recv(1 << 16)
    raise Gone


def closed(_connection: socket.socket) -> None:
    raise Gone


def closes_later(guest: Guest, key: str) -> bytes | None:
    """Tells the truth about itself, and then goes."""
    if key.startswith("rank/"):
        return None
    raise Gone


GREETINGS = {"closes at once": closed, "speaks something else": garbage}
LIES: dict[str, Lie] = {
    "announces 4 EiB": about_rank_0(struct.pack("<Q", 1 << 62)),
    "announces 8 GiB": about_rank_0(struct.pack("<Q", 8 << 30) + bytes(1000)),
    "is no JSON": about_rank_0(value(b"\xff\xfe{")),
    "is deep": about_rank_0(value(b"[" * 100_000)),
    "has another shape": about_rank_0(value(b'{"n1": 0}')),
    "has a long name": about_rank_0(value(json.dumps(["n" * 100_000, 0, "host", "cpu"]).encode())),
    "is huge": about_rank_0(value(b" " * (64 << 20))),
    "goes when all have met": closes_later,
}


@pytest.mark.parametrize("greet", GREETINGS.values(), ids=GREETINGS)
async def test_a_rank_0_that_is_no_store_ends_the_rank(victim, greet: Callable[[socket.socket], None]):
    """It has raised, and says who was there."""
    with LyingStore(greet=greet) as store:
        rank = await victim(store.port)
    check_is_blamed_on_rank_0(rank, store.port)


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_store_that_lies_ends_the_rank(victim, lie: Lie):
    """Whatever it sends and however much: the rank has raised, and has not run out of memory."""
    with LyingStore(lie) as store:
        store.kept["rank/0"] = INTRODUCTION
        rank = await victim(store.port)
    check_is_blamed_on_rank_0(rank, store.port)


async def test_a_rank_0_that_never_answers_costs_the_time_of_the_run(victim):
    """The rank is killed at its deadline."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        rank = await victim(listener.getsockname()[1], timeout_s=5.0)
    assert [finding.code for finding in rank.findings] == ["run.timeout"]


async def test_a_peer_that_sends_more_than_was_asked_for_ends_the_rank(running, check, places):
    """Gloo throws in a thread of its own, which ends the process: that is no crash of the victim's own."""
    victims_elements, peers_elements = 16, 1 << 20

    def measure(_params: Any, context: Any) -> Measurement:
        import torch  # noqa: PLC0415
        import torch.distributed as dist  # noqa: PLC0415

        faulthandler.disable()  # pytest's, which would write to its output
        place = context.rendezvous()
        store = dist.TCPStore(  # type: ignore[attr-defined]
            *(place.master_addr, place.master_port, 2, place.rank == 0), master_listen_fd=place.listen_fd
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


def the_collective() -> Any:
    config = Config(Settings())
    collective.muster_configure(config)
    (check,) = collective.muster_checks(config)
    return check


def check_is_blamed_on_rank_0(rank: Any, port: int) -> None:
    (finding,) = rank.findings
    assert finding.code == "run.raised", finding
    assert finding.summary.startswith("PeerError: ")
    assert finding.evidence["met"] == {"rank": 1, "world_size": 2, "rank_0": f"127.0.0.1:{port}"}
    told = {key: finding.evidence.get(key) for key in ("meeting", "peer_rank", "peers")}
    assert told["meeting"] == f"127.0.0.1:{port}" or told["peer_rank"] == 0 or told["peers"] == ["n1"], finding
