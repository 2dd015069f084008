"""Long answers are made in slices."""

import asyncio
from collections.abc import Sequence

import pytest

from muster_coordinator.web.answers import in_slices


@pytest.mark.parametrize(
    ("turn_s", "expected"),
    [
        (0.0, ["slice of 2", "other", "slice of 2", "other", "slice of 1", "other"]),
        (3600.0, ["slice of 2", "slice of 2", "slice of 1"]),
    ],
)
async def test_others_get_their_turn_after_slices_that_take_long(
    monkeypatch: pytest.MonkeyPatch, turn_s: float, expected: list[str]
) -> None:
    """Between two of them, whatever waits runs; and all is made in order."""
    monkeypatch.setattr("muster_coordinator.web.answers.TURN_S", turn_s)
    happened: list[str] = []

    async def other() -> None:
        while True:
            happened.append("other")
            await asyncio.sleep(0)

    def made(some: Sequence[int]) -> list[int]:
        happened.append(f"slice of {len(some)}")
        return [-each for each in some]

    running = asyncio.create_task(other())
    found = await in_slices([1, 2, 3, 4, 5], 2, made)
    running.cancel()
    assert found == [-1, -2, -3, -4, -5]
    assert happened == expected
