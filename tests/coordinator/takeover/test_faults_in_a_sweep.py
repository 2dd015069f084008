"""At each step of a sweep, the leader is paused or the database ends. The next leader finishes the sweep."""

import asyncio
import contextlib
import http.client
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


async def pause(fleet, leader, eventually):
    """Another one leads. Then the first one goes on, and stands by."""
    await eventually(lambda: psutil.Process(leader.process.pid).status() == psutil.STATUS_STOPPED)
    other = await fleet.leader(but=leader)
    leader.process.send_signal(signal.SIGCONT)
    await eventually(lambda: leader.stands_by, 60)
    return other


async def end_database(fleet, leader, eventually):
    """Nobody leads, until it is back."""
    await eventually(lambda: leader.times("leadership_lost"))
    await asyncio.to_thread(fleet.postgres.start)
    return await fleet.leader()


FAULTS = {
    "paused": (lambda _, leader: leader.process.send_signal(signal.SIGSTOP), pause),
    "without database": (lambda fleet, _: fleet.postgres.stop(), end_database),
}
"""What happens at the step, and what follows; that gives the next leader."""


@pytest.mark.parametrize(
    ("step", "fault"),
    [*((step, "paused") for step in STEPS), ("preparing", "without database"), ("finished", "without database")],
)
async def test_a_sweep_is_finished_by_the_next_leader(fleet, eventually, step, fault):
    """Every node is cleared, no order is obeyed twice or after one of a later leader, and each run is stored once."""
    leader = await fleet.leader()
    begin, go_on = FAULTS[fault]
    async with connected(leader, *NODES, kind=Member) as nodes:
        await eventually(lambda: all(node.seq > 1 for node in nodes.values()))

        def at_the_step(command):
            if command.kind == STEPS[step]:
                for node in nodes.values():
                    node.on_order = node.after_order = None
                begin(fleet, leader)

        for node in nodes.values():
            if step == "finished":
                node.after_order = at_the_step
            elif step != "planned":
                node.on_order = at_the_step
        body = {"check": "collective", "strategy": "pairs"}
        asking = asyncio.create_task(asyncio.to_thread(leader.ask, "POST", "/api/v1/sweeps", body))
        if step == "planned":
            await asking
            begin(fleet, leader)
        other = await go_on(fleet, leader, eventually)
        with contextlib.suppress(OSError, http.client.HTTPException):  # the leader may have stopped before its answer
            await asking
        ended = await eventually(lambda: ended_sweep(other), 60)
        assert (ended["state"], ended["verdict"], ended["cleared_nodes"]) == ("finished", "PASS", [*NODES])
        for node in nodes.values():
            ids, epochs = [order.id for order in node.obeyed], [order.epoch for order in node.obeyed]
            assert len(ids) == len(set(ids))
            assert epochs == sorted(epochs)
        await all_is_stored_once(fleet, nodes, eventually)


def ended_sweep(leader):
    """The only sweep, if it has ended."""
    sweeps = (leader.asks("/api/v1/sweeps") or {"items": []})["items"]
    return next((sweep for sweep in sweeps if sweep["ended_at"]), None)
