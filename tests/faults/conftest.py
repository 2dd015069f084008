"""Fleets of real processes that the tests put through bad luck and set right again."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.faults.book import Book
from tests.faults.fleet import Fleet

SIXTEEN = tuple(f"n{number}" for number in range(1, 17))


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """An empty book for one test."""
    path = tmp_path / "book"
    path.mkdir()
    return Book(path)


@pytest.fixture(scope="package")
def the_fleet(
    tmp_path_factory: pytest.TempPathFactory, new_mosquitto: Callable[[], AbstractContextManager[Any]], mischief: Path
) -> Iterator[Fleet]:
    """The one fleet of all tests here; to be had through `fleet`."""
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path_factory.mktemp("fleet"), broker, mischief)
        yield fleet
        fleet.end()


@pytest.fixture
def fleet(the_fleet: Fleet) -> Fleet:
    """A fleet in which everything runs and every node is free, whatever the test before did to it."""
    the_fleet.set_right()
    return the_fleet


@pytest.fixture(scope="package")
def reservations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which each of the sixteen agents has a file of its node's name for as long as it is leased."""
    return tmp_path_factory.mktemp("reservations")


@pytest.fixture(scope="package")
def sixteen_agents(
    tmp_path_factory: pytest.TempPathFactory,
    new_mosquitto: Callable[[], AbstractContextManager[Any]],
    mischief: Path,
    reservations: Path,
) -> Iterator[Fleet]:
    """A fleet of its own with sixteen agents, which are quiet; to be had through `sixteen`."""
    with new_mosquitto() as broker:
        directory = tmp_path_factory.mktemp("sixteen")
        fleet = Fleet(directory, broker, mischief, nodes=SIXTEEN, background_s=60.0)
        for node, agent in fleet.agents.items():
            agent.settings["plugins"]["reservation_file"] = {"path": str(reservations / node)}
        yield fleet
        fleet.end()


@pytest.fixture
def sixteen(sixteen_agents: Fleet) -> Fleet:
    """As `fleet`, with sixteen agents."""
    sixteen_agents.set_right()
    return sixteen_agents
