"""A server for webhooks and the plugin, which the tests share."""

from collections.abc import AsyncIterator
from importlib.metadata import entry_points
from typing import Any

import pytest
from tests.plugins.notifiers.webhook.servers import SECRET, TOKEN, Server, Told, serving

from muster.config import Config, Settings
from muster.plugins import GROUP, Plugins, load


@pytest.fixture
async def server(live: None) -> AsyncIterator[Server]:
    async with serving() as server:
        yield server


@pytest.fixture
async def plugin(tmp_path) -> AsyncIterator[Any]:
    """Loads the plugin as everybody does, with these targets; closed at the end of the test."""
    loaded: list[Plugins] = []
    for name, secret in (("secret", SECRET), ("token", TOKEN), ("key", "R" * 32)):
        (tmp_path / name).write_text(f"{secret}\n", encoding="ascii")

    def make(muster_url=None, **targets) -> Told:
        table = {"targets": targets, "muster_url": muster_url}
        config = Config(Settings.model_validate({"fleet": "prod", "plugins": {"webhook": table}}))
        loaded.append(load(config, entry_points(group=GROUP, name="webhook")))
        return Told(loaded[-1])

    yield make
    for plugins in loaded:
        await plugins.call_each("muster_close", 5)
