"""What the check `host` makes of the clock."""

import ctypes

import pytest
from tests.plugins.checks.host.looking import NONE, judged

from muster import Measurement
from muster_plugins.checks.host import clock as host_clock


def test_the_clock_of_this_machine_can_be_read():
    """By anybody, without a network."""
    measurement = host_clock.look(NONE)
    offset, most = measurement.metrics["clock_offset_s"], measurement.metrics["clock_max_error_s"]
    assert isinstance(offset, float)
    assert isinstance(most, float)
    assert 0 <= offset < 3600
    assert most > 0
    assert isinstance(measurement.facts["clock_synchronised"], bool)


def test_the_kernels_structure_has_its_size():
    """208 bytes on every 64-bit Linux: less, and the kernel would write behind it."""
    assert ctypes.sizeof(host_clock._Timex) == 208


@pytest.mark.parametrize(
    ("synchronised", "offset", "most", "expected"),
    [
        (True, 0.001, 0.1, {}),
        (True, 0.2, 0.3, {"host.clock_off": "WARNING"}),
        (False, 0.0, 16.0, {"host.clock_unsynchronised": "WARNING"}),
        (False, 0.0, 0.1, {}),
    ],
    ids=["right", "off", "nobody cares for it", "chronyd without rtcsync"],
)
def test_judgement_of_the_clock(synchronised, offset, most, expected):
    """An offset means something only where the clock is synchronised."""
    measurement = Measurement(
        metrics={"clock_offset_s": offset, "clock_max_error_s": most}, facts={"clock_synchronised": synchronised}
    )
    assert judged(host_clock, measurement) == expected
