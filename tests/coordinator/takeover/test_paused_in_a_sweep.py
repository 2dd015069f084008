"""The leader is paused at each step of a sweep. Another one leads and finishes it, and then the first one goes on."""

import asyncio
import signal
import time

import psutil
import pytest
from tests.coordinator.conftest import connected
from tests.coordinator.takeover.conftest import Reporter
from tests.coordinator.takeover.test_takeover import all_is_stored_once

from muster_agent.decide.admission import CommandAdmission

NODES = ("n1", "n2", "n3", "n4")
STEPS = {"planned": None, "joining": "join", "preparing": "prepare", "started": "start", "finished": "start"}


class Member(Reporter):
    """A node that decides as an agent which orders it obeys. It may stop the leader when an order comes."""

    def __init__(self, name, **settings):
        super().__init__(name, **settings)
        self.admission = CommandAdmission()
        self.obeyed = []
        self.on_order = None
        self.after_order = None

    async def _obey(self, command):
        if self.admission.refusal(command, time.time()) is None:
            self.obeyed.append(command)
            if self.on_order is not None:
                self.on_order(command)
            await super()._obey(command)
            if self.after_order is not None:
                self.after_order(command)


def is_stopped(process):
    return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED


@pytest.mark.parametrize("step", STEPS)
async def test_a_sweep_is_finished_by_the_next_leader(fleet, eventually, step):
    """Every node is cleared, no order is obeyed twice or after one of a later leader, and each run is stored once."""
    leader = await fleet.leader()
    async with connected(leader, *NODES, kind=Member) as nodes:
        await eventually(lambda: all(node.seq > 1 for node in nodes.values()))

        def stop(command):
            if command.kind == STEPS[step]:
                leader.process.send_signal(signal.SIGSTOP)
                for node in nodes.values():
                    node.on_order = node.after_order = None

        for node in nodes.values():
            if step == "finished":
                node.after_order = stop
            elif step != "planned":
                node.on_order = stop
        body = {"check": "collective", "strategy": "pairs"}
        status, sweep = await asyncio.to_thread(leader.ask, "POST", "/api/v1/sweeps", body)
        assert status == 201
        if step == "planned":
            leader.process.send_signal(signal.SIGSTOP)
        await eventually(lambda: is_stopped(leader.process))
        other = await fleet.leader(but=leader)
        leader.process.send_signal(signal.SIGCONT)
        await eventually(lambda: leader.stands_by, 60)
        ended = await eventually(lambda: is_ended(other, sweep["id"]), 60)
        assert (ended["state"], ended["verdict"], ended["cleared_nodes"]) == ("finished", "PASS", [*NODES])
        for node in nodes.values():
            ids, epochs = [order.id for order in node.obeyed], [order.epoch for order in node.obeyed]
            assert len(ids) == len(set(ids))
            assert epochs == sorted(epochs)
        await all_is_stored_once(fleet, nodes, eventually)


def is_ended(leader, sweep):
    """The sweep, if it has ended."""
    found = leader.asks(f"/api/v1/sweeps/{sweep}")
    return found if found and found["ended_at"] else None
