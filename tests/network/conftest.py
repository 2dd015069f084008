"""The laboratory in which the tests of this folder run; see `laboratory`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.network.laboratory import Laboratory
from tests.network.wires import new_network
from tests.preloaded import built


@pytest.fixture(scope="package")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that shifts the wall clock of the process that loads it."""
    return built("clock", tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="package")
def the_laboratory(with_torch: None, tmp_path_factory: pytest.TempPathFactory, clock: Path) -> Iterator[Laboratory]:
    """The one laboratory of all tests here; to be had through `laboratory`."""
    with new_network() as network:
        laboratory = Laboratory(network, tmp_path_factory.mktemp("laboratory"), clock)
        try:
            laboratory.start()
            yield laboratory
        finally:
            laboratory.end()


@pytest.fixture
def laboratory(the_laboratory: Laboratory) -> Laboratory:
    """A laboratory in which everything is healthy and free, whatever the test before did to it."""
    the_laboratory.set_right()
    return the_laboratory
