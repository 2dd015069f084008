"""A store in a database of its own."""

import pytest

from muster.config import Settings
from muster_coordinator.store.store import Store


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
async def store(settings):
    store = await Store.open(settings)
    yield store
    await store.close()
