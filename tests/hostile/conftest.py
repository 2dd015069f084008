"""One compromised node against a real broker, coordinator and agents, under the accounts and ACL that muster ships."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.brokers import docker_settings
from tests.hostile.world import Attacker, World, write_accounts


@pytest.fixture(scope="package")
def shipped_broker(
    tmp_path_factory: pytest.TempPathFactory, new_mosquitto: Callable[..., AbstractContextManager[Any]]
) -> Iterator[Any]:
    """Mosquitto with the settings that docker/ ships, and accounts for the coordinator and every node."""
    with new_mosquitto(docker_settings(write_accounts(tmp_path_factory.mktemp("accounts")))) as broker:
        yield broker


@pytest.fixture(scope="package")
def the_world(tmp_path_factory: pytest.TempPathFactory, shipped_broker: Any, mischief: Path) -> Iterator[World]:
    """The one fleet of all tests here; tests use it through `world`."""
    world = World(tmp_path_factory.mktemp("world"), shipped_broker, mischief)
    yield world
    world.end()


@pytest.fixture
def world(the_world: World) -> World:
    """The fleet, in which everything runs and every node is free, whatever an earlier test did."""
    the_world.set_right()
    return the_world


@pytest.fixture
def attacker(world: World) -> Iterator[Attacker]:
    """The hostile node's connection."""
    attacker = world.attacker()
    yield attacker
    attacker.leave()
