"""Which device each number of a run is of."""

import pytest

from muster_coordinator.normal.readings import by_device


@pytest.mark.parametrize(
    ("facts", "devices"),
    [
        ({}, [0, 1]),
        ({"devices": [4, 5]}, [4, 5]),
        ({"devices": [{"index": 4, "uuid": "a"}, {"index": 6}]}, [4, 6]),
        ({"devices": [{"uuid": "a"}, "x"]}, [None, None]),
        ({"devices": [4]}, [0, 1]),
    ],
)
def test_the_facts_name_the_devices(facts, devices):
    """By index, or by objects with an index; if they name as many as there are numbers."""
    assert by_device([1.0, 2.0], facts) == list(zip(devices, [1.0, 2.0], strict=True))
