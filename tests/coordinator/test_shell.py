"""The parts of a coordinator side by side: when one fails, all end."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cases import cases

from muster_coordinator.model.events import Ticked
from muster_coordinator.shell import LATE_S, TICK_S, Shell, lost_s


async def for_ever(*_):
    await asyncio.Event().wait()


async def fails(*_):
    raise OSError("the disk is full")


async def forgets_once(*_):
    """Ends when it is told to for the second time, as aiomqtt does when it is told while an answer comes in."""
    try:
        await for_ever()
    except asyncio.CancelledError:
        await for_ever()


async def test_a_part_that_forgets_to_end_keeps_nobody_waiting():
    """The failure of another is what comes out, within seconds."""
    part: Any = SimpleNamespace(run=for_ever, compactor=SimpleNamespace(run=for_ever))
    pipeline: Any = SimpleNamespace(run=fails, feed=lambda event: None)
    link: Any = SimpleNamespace(run=forgets_once)
    shell = Shell(
        pipeline=pipeline,
        link=link,
        stream=part,
        changes=part,
        notifier=part,
        artifacts=part,
        dispatcher=part,
        alarms=part,
        poller=part,
        health=part,
        retention=part,
    )
    with pytest.raises(ExceptionGroup) as failed:
        async with asyncio.timeout(10), shell.running():
            await for_ever()
    assert failed.group_contains(OSError, match="the disk is full")


async def test_a_superseded_coordinator_acts_on_no_node(monkeypatch):
    """It stops polling and calling schedulers; everything else runs until it is stopped.

    The watchdog is part of the rest. A supervisor that hears nothing restarts the coordinator, which then leads again.
    """
    ended: list[str] = []

    def part(name: str) -> Any:
        async def run(*_):
            try:
                await for_ever()
            finally:
                ended.append(name)

        return SimpleNamespace(run=run, compactor=SimpleNamespace(run=for_ever))

    async def superseded():
        pass

    async def done():
        pass

    pipeline = part("pipeline")
    pipeline.offer, pipeline.flush, pipeline.late_s = lambda _event: None, done, 0.0
    names = ("stream", "changes", "notifier", "artifacts", "dispatcher", "alarms", "poller", "health", "retention")
    monkeypatch.setattr("muster_coordinator.shell.keep_watchdog_quiet", part("watchdog").run)
    link: Any = SimpleNamespace(run=superseded)
    shell = Shell(pipeline=pipeline, link=link, **{name: part(name) for name in names})
    async with asyncio.timeout(10), shell.running():
        while len(ended) < 5:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert sorted(ended) == ["alarms", "artifacts", "dispatcher", "health", "poller"]
    assert {"retention", "pipeline", "notifier", "watchdog"} <= set(ended)


@cases(
    ("passed_s", "late_s", "lost"),
    [
        (TICK_S, 0.0, 0.0),
        (TICK_S + 0.2, 0.2, 0.0),  # a little late, as on any host
        (TICK_S, LATE_S, TICK_S),  # a commit takes long, or messages wait
        (TICK_S + LATE_S, 0.0, TICK_S + LATE_S),  # this process did nothing
    ],
)
def test_the_time_in_which_the_coordinator_is_late_is_lost(passed_s, late_s, lost):
    """All of it: what waits now has waited since then."""
    assert lost_s(passed_s, late_s) == lost


@pytest.mark.looptime
async def test_ticks_say_how_much_time_was_lost():
    """While commands wait to be stored, it is all; before and after, none."""
    offered: list[Ticked] = []
    part: Any = SimpleNamespace(run=for_ever, compactor=SimpleNamespace(run=for_ever))
    pipeline: Any = SimpleNamespace(run=for_ever, offer=offered.append, flush=lambda: asyncio.sleep(0), late_s=0.0)
    names = ("stream", "changes", "notifier", "artifacts", "dispatcher", "alarms", "poller", "health", "retention")
    shell = Shell(pipeline=pipeline, link=part, **dict.fromkeys(names, part))
    lost = []
    async with shell.running():
        for late_s in (0.0, 3.0, 0.0):
            pipeline.late_s = late_s
            await asyncio.sleep(10.5 * TICK_S)
            lost.append(sum(tick.lost_s for tick in offered))
            offered.clear()
    assert lost == pytest.approx([0.0, 10 * TICK_S, 0.0], abs=TICK_S)
