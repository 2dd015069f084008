"""The leader is paused at each step of a cordon. Another one leads and finishes it, and then the first one goes on."""

import asyncio
import contextlib
import json
import signal

import pytest
from tests.coordinator.takeover.conftest import reporting
from tests.faults.desk import Desk

from muster.model import Finding, Severity, Verdict

LOST = Finding(code="nvml.device_lost", summary="the GPU is lost", severity=Severity.ERROR)
NODE = "n1"


@pytest.fixture
def desk(tmp_path):
    """A scheduler that writes down its calls."""
    (tmp_path / "desk").mkdir()
    return Desk(tmp_path / "desk")


@pytest.fixture
def more_settings(desk):
    """Both coordinators drain nodes at this scheduler, and take them back after one pass."""
    quarantine = {
        "mode": "enforce",
        "budget": {"share": "100%", "domain_share": "100%", "per_minute": 6000},
        "mass_event": {"nodes": 100},
        "returning": {"wait_s": 0.0, "pause_s": 0.0, "passes": 1},
        "trust_loopback": True,
    }
    actor = {"path": str(desk.scheduler), "can_cordon": True}
    return {
        "MUSTER_QUARANTINE": json.dumps(quarantine),
        "MUSTER_PLUGINS": json.dumps({"script": {"actor": actor}}),
    }


def called(desk):
    """The transitions that the scheduler was called for, in order, each once in a row."""
    return list(dict.fromkeys(desk.book("called", NODE, "CORDONED")))


async def before_it_is_done(leader, desk, eventually, stack):
    """The call has begun, and the scheduler has not acted."""
    stack.enter_context(desk.waiting("before"))
    yield
    await eventually(lambda: called(desk))
    leader.process.send_signal(signal.SIGSTOP)


async def before_it_is_answered(leader, desk, eventually, stack):
    """The scheduler has acted, and not answered."""
    stack.enter_context(desk.waiting("after"))
    yield
    await eventually(lambda: desk.book("did", NODE, "CORDONED"))
    leader.process.send_signal(signal.SIGSTOP)


async def before_it_is_called(leader, desk, eventually, stack):
    """The report is on its way."""
    yield
    leader.process.send_signal(signal.SIGSTOP)


@pytest.mark.parametrize("step", [before_it_is_called, before_it_is_done, before_it_is_answered])
async def test_a_cordon_is_finished_by_the_next_leader(fleet, desk, eventually, step):
    """One decision takes the node out of service, under any leader, and it is out when the first leader has gone on."""
    leader = await fleet.leader()
    async with reporting(leader, NODE, "n2", "n3") as nodes:
        await eventually(lambda: all(node.seq > 1 for node in nodes.values()))
        for node in nodes.values():
            node.most = 0  # what is out now stays as it is
        with contextlib.ExitStack() as stack:
            pausing = step(leader, desk, eventually, stack)
            await anext(pausing)
            await nodes[NODE].report("nvml", Verdict.FAIL, findings=(LOST,))
            with pytest.raises(StopAsyncIteration):
                await anext(pausing)
            other = await fleet.leader(but=leader)
            leader.process.send_signal(signal.SIGCONT)
            await eventually(lambda: leader.stands_by, 60)
        await eventually(lambda: (case_of(other) or {}).get("state") == "CORDONED", 60)
        await eventually(lambda: desk.state(NODE) == "out")
        await asyncio.sleep(1)
        assert other.leads
        assert desk.state(NODE) == "out"
        assert len(called(desk)) == 1


def case_of(leader):
    """What is decided about the node."""
    return leader.asks(f"/api/v1/nodes/{NODE}/case")
