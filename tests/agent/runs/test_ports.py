"""Ports for groups, and which address a node is reached by."""

import asyncio
import contextlib
import os
import socket

import pytest

from muster.agent_settings import AgentSettings
from muster.check import Check, Params, Scope
from muster.config import BrokerSettings, Settings
from muster.model import Measurement
from muster_agent.decide.events import ConnectToRankZero, PortOpened, PortRefused, RankZeroReached, RankZeroUnreachable
from muster_agent.decide.orders import Order
from muster_agent.runs.ports import BACKLOG, Ports, alone, own_address, reach

HERE = Settings(node="n", agent=AgentSettings(address="127.0.0.1"))


async def test_a_port_is_the_groups_until_it_is_closed():
    """Nobody else can have it meanwhile."""
    ports = Ports(HERE)
    opened = await ports.open("g")
    assert isinstance(opened, PortOpened)
    assert (opened.group, opened.address) == ("g", "127.0.0.1")
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", opened.port))
    with socket.create_connection((opened.address, opened.port), timeout=5) as turned_away:
        assert await asyncio.to_thread(turned_away.recv, 1) == b""
    ports.close("g")
    socket.create_server(("127.0.0.1", opened.port)).close()


async def test_strangers_at_a_port_keep_no_member_out():
    """More of them connect than the kernel queues, before rank 0 accepts connections."""
    ports = Ports(HERE)
    opened = await ports.open("g")
    assert isinstance(opened, PortOpened)
    listener = ports.copy("g")
    assert listener
    with listener, contextlib.ExitStack() as strangers:
        for _ in range(BACKLOG // 100 + 2):
            for _ in range(100):
                stranger = strangers.enter_context(socket.socket())
                stranger.setblocking(False)
                stranger.connect_ex((opened.address, opened.port))
            await asyncio.sleep(0)
        assert await reach(ConnectToRankZero("g", opened.address, opened.port, 5.0)) == RankZeroReached("g")
    ports.close_all()


async def test_rank_0_listens_on_when_the_agent_no_longer_does():
    """From then on, connections are rank 0's."""
    ports = Ports(HERE)
    opened = await ports.open("g")
    assert isinstance(opened, PortOpened)
    listener = ports.copy("g")
    assert listener
    with listener:
        ports.close("g")
        with socket.create_connection((opened.address, opened.port), timeout=5):
            await asyncio.sleep(0)
            assert os.get_blocking(listener.fileno())
            listener.accept()[0].close()
    assert ports.copy("g") is None


async def test_an_address_that_is_not_this_hosts_is_refused():
    """The group is declined with the reason."""
    refused = await Ports(Settings(node="n", agent=AgentSettings(address="192.0.2.1"))).open("g")
    assert isinstance(refused, PortRefused)
    assert "assign" in refused.detail


async def test_reach_tries_again_until_somebody_listens():
    """Rank 0 may be a moment later."""
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))
        asyncio.get_running_loop().call_later(0.2, late.listen)
        assert await reach(ConnectToRankZero("g", "127.0.0.1", late.getsockname()[1], 10.0)) == RankZeroReached("g")


async def test_reach_gives_up_and_says_why():
    """The detail names address, port and problem."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        outcome = await reach(ConnectToRankZero("g", "127.0.0.1", port, 0.3))
    assert isinstance(outcome, RankZeroUnreachable)
    assert outcome.detail.startswith(f"127.0.0.1 port {port} cannot be reached within 0.3 s")
    assert "refused" in outcome.detail.lower()


@pytest.mark.parametrize(("address", "port"), [("127.0.0.1", 1 << 20), ("x" * 80, 80), ("a..b", 80)])
async def test_reach_refuses_what_is_no_address(address, port):
    """A coordinator may say anything."""
    assert isinstance(await reach(ConnectToRankZero("g", address, port, 0.1)), RankZeroUnreachable)


def test_the_address_is_that_of_the_route_to_the_broker():
    """Unless the settings say another."""
    assert own_address(Settings(node="n", broker=BrokerSettings(url="mqtt://localhost"))) in ("127.0.0.1", "::1")
    assert own_address(HERE) == "127.0.0.1"


def test_without_a_url_the_broker_is_the_embedded_one():
    """On loopback."""
    assert BrokerSettings().agent_url == "mqtt://127.0.0.1:1883"
    assert BrokerSettings(url="mqtts://b").agent_url == "mqtts://b"


def test_a_group_check_on_one_node_is_a_group_of_one_node():
    """It meets on loopback, at a port that it holds."""
    check = Check(
        name="collective",
        summary="",
        scope=Scope.GROUP,
        params=Params,
        measure=lambda _params, _context: Measurement(),
        judge=lambda _measurement, _references: [],
        timeout_s=1.0,
    )
    order, listener = alone(Order(run="r", check=check, params=Params(), timeout_s=1.0), 2)
    with listener:
        assert [(place.rank, place.local_rank, place.world_size) for place in order.places] == [(0, 0, 2), (1, 1, 2)]
        assert {(place.master_addr, place.master_port) for place in order.places} == {listener.getsockname()}
