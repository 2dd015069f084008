"""The parts of a coordinator side by side: when one fails, all end."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from muster_coordinator.shell import Shell


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
    pipeline.offer, pipeline.flush = lambda _event: None, done
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
