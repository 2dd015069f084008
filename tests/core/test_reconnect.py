"""How ten thousand agents come back after an outage of their broker."""

import heapq
import random
from collections.abc import Iterator

import pytest

from muster.mqtt import pause_s
from muster.reconnect import LONGEST_PAUSE_S, RECONNECTED_WITHIN_S

AGENTS = 10_000
ATTEMPT_FAILS_AFTER_S = 10.0
"""The timeout of aiomqtt for the broker's answer."""


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """The same pauses in every run."""
    state = random.getstate()
    random.seed(14)
    yield
    random.setstate(state)


def come_back(away_s: float, greetings_per_s: float) -> tuple[float, int]:
    """When the last agent is back after the broker's return, and how many attempts the broker has seen.

    All lose their connection at once. The broker greets in the order of the attempts; one that waits for too long has
    failed.
    """
    attempts = [(pause_s(0), 0) for _ in range(AGENTS)]
    heapq.heapify(attempts)
    is_free_at, seen = away_s, 0
    while attempts:
        at, failed = heapq.heappop(attempts)
        if at < away_s:
            heapq.heappush(attempts, (at + pause_s(failed + 1), failed + 1))
            continue
        seen += 1
        greeted_at = max(is_free_at, at) + 1 / greetings_per_s
        if greeted_at - at > ATTEMPT_FAILS_AFTER_S:
            heapq.heappush(attempts, (at + ATTEMPT_FAILS_AFTER_S + pause_s(failed + 1), failed + 1))
        else:
            is_free_at = greeted_at
    return is_free_at - away_s, seen


@pytest.mark.parametrize("greetings_per_s", [300.0, 500.0, 6_000.0], ids=["slow", "TLS", "plain"])
@pytest.mark.parametrize("away_s", [0.3, 1.0, 5.0, 60.0])
def test_all_are_back_within_a_minute(away_s: float, greetings_per_s: float) -> None:
    """However fast the broker greets, and with less than two attempts of each agent."""
    last_s, attempts = come_back(away_s, greetings_per_s)
    assert last_s < RECONNECTED_WITHIN_S
    assert attempts < 2 * AGENTS


def test_an_hour_is_no_other_than_a_minute() -> None:
    """The pauses reach their limit after five attempts, and never grow beyond it."""
    assert max(pause_s(attempt) for attempt in range(5, 5_000)) <= LONGEST_PAUSE_S
    assert max(pause_s(5) for _ in range(5_000)) > 0.99 * LONGEST_PAUSE_S
