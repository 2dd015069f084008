"""A fleet whose coordinator is killed and starts again; see `lives`."""

import pytest
from tests.coordinator.restart.lives import NODES, Lives, acts, inventory

from muster.config import Settings
from muster.transition import Effect
from muster_coordinator.store.store import Store


@pytest.fixture
async def lives(data_dir):
    """A fleet of healthy nodes in service, of which all actors know."""
    store = await Store.open(Settings(data_dir=data_dir))
    try:
        lives = Lives(store)
        await lives.begin()
        for node in NODES:
            await lives.feed(inventory(node))
            (act,) = acts(await lives.feed(lives.run(node)))
            await lives.told(act.record.transition, kubernetes=Effect.DONE)
        yield lives
    finally:
        await store.close()
