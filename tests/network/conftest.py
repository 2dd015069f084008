"""The laboratory in which the tests of this folder run; see `laboratory`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.network.laboratory import Laboratory
from tests.network.wires import SIX_HOSTS, TWELVE_HOSTS, new_network
from tests.preloaded import built


@pytest.fixture(scope="package")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that shifts the wall clock of the process that loads it."""
    return built("clock", tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="package")
def the_laboratory(with_torch: None, tmp_path_factory: pytest.TempPathFactory, clock: Path) -> Iterator[Laboratory]:
    """The laboratory of most tests here; to be had through `laboratory`."""
    with new_network(SIX_HOSTS) as network:
        yield from _running(Laboratory(network, tmp_path_factory.mktemp("laboratory"), clock))


@pytest.fixture(scope="module")
def large_laboratory(with_torch: None, tmp_path_factory: pytest.TempPathFactory, clock: Path) -> Iterator[Laboratory]:
    """A healthy laboratory with twice as many hosts."""
    with new_network(TWELVE_HOSTS) as network:
        yield from _running(Laboratory(network, tmp_path_factory.mktemp("large-laboratory"), clock))


@pytest.fixture
def new_laboratory(with_torch: None, tmp_path: Path, clock: Path) -> Iterator[Laboratory]:
    """A laboratory that has never been swept. What one sweep suspects, several healthy ones after it still say."""
    with new_network(SIX_HOSTS) as network:
        yield from _running(Laboratory(network, tmp_path, clock))


def _running(laboratory: Laboratory) -> Iterator[Laboratory]:
    try:
        laboratory.start()
        laboratory.set_right()
        yield laboratory
    finally:
        laboratory.end()


@pytest.fixture
def laboratory(the_laboratory: Laboratory) -> Laboratory:
    """A laboratory in which everything is healthy and free, whatever the test before did to it."""
    the_laboratory.set_right()
    return the_laboratory
