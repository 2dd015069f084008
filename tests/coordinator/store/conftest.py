"""A store in a database of its own."""

import shutil

import pytest

from muster.config import Settings
from muster_coordinator.store.store import Store


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
async def store(settings, empty_database):
    settings.data_dir.mkdir()
    shutil.copy(empty_database, settings.data_dir)
    store = await Store.open(settings)
    yield store
    await store.close()
