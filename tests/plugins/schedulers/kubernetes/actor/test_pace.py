"""The API server is asked no more than so much in a second, except for what cannot wait."""

import pytest

from muster import Effect
from muster_plugins.schedulers.kubernetes.request_rate import RateLimiter


@pytest.fixture
def waited(monkeypatch):
    """How often somebody has waited for a turn."""
    turns = []
    wait = RateLimiter.wait

    async def noted(pace):
        turns.append(pace)
        await wait(pace)

    monkeypatch.setattr(RateLimiter, "wait", noted)
    return turns


@pytest.mark.parametrize("after", ["ACCEPTING", "CORDONED", "PROBATION"])
async def test_what_takes_a_node_out_does_not_wait(coordinator, waited, after):
    """None of its requests waits."""
    assert (await coordinator.tell(after)).effect is Effect.DONE
    assert waited == []


async def test_an_uncordon_waits(standin, coordinator, waited):
    """Each of its requests waits, and so does the survey."""
    assert (await coordinator.tell("IN_SERVICE")).effect is Effect.DONE
    assert len(waited) == len(standin.requests) == 3
    await coordinator.survey()
    assert len(waited) == len(standin.requests)
