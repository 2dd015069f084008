"""One compromised node against a real broker, coordinator and agents, under the accounts and ACL that muster ships."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.faults.desk import Desk
from tests.hostile.world import HONEST, HOSTILE, PROBE, Attacker, World, password_of

DOCKER = Path(__file__).parent.parent.parent / "docker"


def shipped_settings(passwords: Path) -> str:
    """What docker/mosquitto.conf says, with paths of this machine and without its listener."""
    lines = (DOCKER / "mosquitto.conf").read_text().splitlines()
    paths = {"password_file": str(passwords), "acl_file": str(DOCKER / "mosquitto.acl")}
    words = [line.split() for line in lines if line and not line.startswith(("#", "listener"))]
    return "\n".join(" ".join([name, paths.get(name, " ".join(rest))]) for name, *rest in words)


@pytest.fixture(scope="session")
def shipped_broker(
    tmp_path_factory: pytest.TempPathFactory, new_mosquitto: Callable[..., AbstractContextManager[Any]]
) -> Iterator[Any]:
    """Mosquitto with the settings that docker/ ships, and an account for the coordinator and every node."""
    passwords = tmp_path_factory.mktemp("accounts") / "passwords"
    accounts = ("coordinator", HOSTILE, PROBE, *HONEST)
    passwords.write_text("".join(f"{name}:{password_of(name)}\n" for name in accounts))
    subprocess.run(["mosquitto_passwd", "-U", passwords], check=True, timeout=60)
    with new_mosquitto(shipped_settings(passwords)) as broker:
        yield broker


@pytest.fixture(scope="session")
def the_world(tmp_path_factory: pytest.TempPathFactory, shipped_broker: Any, mischief: Path) -> Iterator[World]:
    """The one fleet of all tests here; to be had through `world`."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    world = World(tmp_path_factory.mktemp("world"), shipped_broker, mischief, desk)
    yield world
    world.end()


@pytest.fixture
def world(the_world: World) -> World:
    """The fleet in which everything runs and every node is free, whatever the test before did to it."""
    the_world.set_right()
    return the_world


@pytest.fixture
def attacker(world: World) -> Iterator[Attacker]:
    """The hostile node's connection."""
    attacker = world.attacker()
    yield attacker
    attacker.leave()
