"""How often a request for readiness writes into the database."""

import asyncio

import pytest

from muster.errors import Unavailable
from muster_coordinator.web.readiness import STANDS_S, Readiness


class Disk:
    """Counts writes, and fails while it is full."""

    def __init__(self) -> None:
        self.writes = 0
        self.is_full = False

    async def write(self) -> None:
        self.writes += 1
        await asyncio.sleep(0.1)
        if self.is_full:
            raise Unavailable("the database cannot be written")


@pytest.mark.looptime
async def test_many_requests_write_once_a_second():
    """However many clients ask at once."""
    disk = Disk()
    readiness = Readiness(disk.write)
    await asyncio.gather(*(readiness.check() for _ in range(500)))
    assert disk.writes == 1
    await asyncio.sleep(STANDS_S)
    await asyncio.gather(*(readiness.check() for _ in range(500)))
    assert disk.writes == 2


@pytest.mark.looptime
async def test_a_failure_is_not_remembered():
    """Each request tries again, so a disk that has room again is seen at once."""
    disk = Disk()
    readiness = Readiness(disk.write)
    disk.is_full = True
    for _ in range(3):
        with pytest.raises(Unavailable):
            await readiness.check()
    disk.is_full = False
    await readiness.check()
    assert disk.writes == 4
