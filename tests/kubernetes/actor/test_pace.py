"""The API server is asked no more than so much in a second, except for what cannot wait."""

import pytest

from muster import Effect
from muster_plugins.schedulers.kubernetes.pace import Pace
from muster_plugins.schedulers.kubernetes.token_bucket import TokenBucket


def test_tokens_of_a_second_are_there_at_once():
    """Whoever comes later waits, each for longer than the one before, until they have had time to come again."""
    bucket = TokenBucket(4)
    assert [bucket.take(100.0) for _ in range(7)] == [0, 0, 0, 0, 0.25, 0.5, 0.75]
    assert [bucket.take(101.0) for _ in range(2)] == [0, 0.25]
    assert [bucket.take(200.0) for _ in range(5)] == [0, 0, 0, 0, 0.25]


def test_who_does_not_wait_takes_what_there_is():
    """Others wait for longer, yet not for ever: what was taken without being there is never owed."""
    bucket = TokenBucket(4)
    for _ in range(1000):
        bucket.take_if_there(100.0)
    assert [bucket.take(100.0) for _ in range(2)] == [0.25, 0.5]


def test_the_rate_holds_in_the_long_run():
    """However many want to go at the same time."""
    bucket = TokenBucket(200)
    assert max(bucket.take(0.0) for _ in range(40_000)) == pytest.approx(199.0)


@pytest.fixture
def waited(monkeypatch):
    """How often somebody has waited for a turn."""
    turns = []
    wait = Pace.wait

    async def noted(pace):
        turns.append(pace)
        await wait(pace)

    monkeypatch.setattr(Pace, "wait", noted)
    return turns


@pytest.mark.parametrize("after", ["ACCEPTING", "CORDONED", "PROBATION"])
async def test_what_takes_a_node_out_does_not_wait(coordinator, waited, after):
    """With none of its requests."""
    assert (await coordinator.tell(after)).effect is Effect.DONE
    assert waited == []


async def test_what_lets_a_node_in_waits(standin, coordinator, waited):
    """With each of its requests, as does the survey."""
    assert (await coordinator.tell("IN_SERVICE")).effect is Effect.DONE
    assert len(waited) == len(standin.requests) == 4
    await coordinator.survey()
    assert len(waited) == len(standin.requests)
