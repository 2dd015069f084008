"""The resident child says when the node is about to leave, and when it stays after all."""

import asyncio
from itertools import chain, repeat
from typing import Any

from muster import DepartureProbe
from muster_agent.runs.resident import ResidentChild


def probe(*answers, name="cloud") -> DepartureProbe:
    """Gives these answers, the last for ever; an exception is raised."""
    coming = chain(answers, repeat(answers[-1]))

    def ask() -> Any:
        answer = next(coming)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return DepartureProbe(name=name, probe=ask, interval_s=0.01)


async def heard(launched, *probes, changes) -> list[str | None]:
    """So many changes, as the daemon learns them; only the inventory was asked for."""
    news: asyncio.Queue[str | None] = asyncio.Queue()
    launcher = launched(muster_departures=lambda: probes)
    resident = ResidentChild(launcher, None, leaving=news.put_nowait)
    try:
        async with asyncio.timeout(20):
            await resident.inventory()
            return [await news.get() for _ in range(changes)]
    finally:
        await resident.close()


async def test_each_change_is_told_once(launched):
    """A node that stays says nothing at the start."""
    answers = (None, "AWS stops it", "AWS stops it", None, "AWS ends it")
    assert await heard(launched, probe(*answers), changes=3) == ["AWS stops it", None, "AWS ends it"]


async def test_a_probe_that_raises_takes_nothing_from_the_others(launched):
    """It is not asked again; the log names it."""
    probes = (probe(RuntimeError("no"), name="broken"), probe(None, "Karpenter removes it"))
    assert await heard(launched, *probes, changes=1) == ["Karpenter removes it"]
