"""Long answers are made in slices."""

import asyncio
from collections.abc import Sequence

from muster_coordinator.web.answers import in_slices


async def test_others_get_their_turn_after_each_slice() -> None:
    """Between two slices, whatever waits runs; and all is made in order."""
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
    assert happened == ["slice of 2", "other", "slice of 2", "other", "slice of 1", "other"]
