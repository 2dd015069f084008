"""What is made of several looks at a device."""

import pytest
from tests.cases import cases

from muster_plugins.shared.devices.history import MOST_LOOKS, History, Look, look_at, over_time, risen, slowed_down_s
from muster_plugins.shared.devices.reading import DeviceReading

CRC = "nvlink_crc_errors"
LIMITS = {"sm_clock_max_mhz": 2000.0, "pcie_generation_max": 5.0, "pcie_width_max": 16.0}


def counted(*values):
    """Looks a minute apart at a counter; None is a look that does not say it."""
    return [Look(60.0 * each, counters={} if value is None else {CRC: value}) for each, value in enumerate(values)]


@cases(
    ("values", "expected"),
    [
        ((), None),
        ((7.0,), None),
        ((None, 7.0), None),
        ((7.0, 7.0), 0.0),
        ((7.0, 9.0, 12.0), 5.0),
        ((7.0, None, 12.0), 5.0),
        ((1000.0, 0.0, 4.0), 4.0),
        ((2.0**32 - 1, 3.0), 0.0),
        ((1000.0, 900.0), 0.0),
    ],
)
def test_only_rises_of_a_counter_count(values, expected):
    """A reloaded driver, a wrapped counter and a single reading cause no false errors."""
    assert risen(CRC, counted(*values)) == expected


def test_a_rate_is_over_its_whole_window():
    """The first error after a start is not a storm, and readings older than the window do not count."""
    assert over_time(counted(0.0, 600.0), {})["nvlink_crc_errors_per_s"] == 1.0
    assert over_time(counted(0.0, 600.0, *[600.0] * 9), {})["nvlink_crc_errors_per_s"] == 1.0
    assert over_time(counted(0.0, 600.0, *[600.0] * 10), {})["nvlink_crc_errors_per_s"] == 0.0


def test_the_rate_of_correctable_errors_is_over_an_hour():
    """Ten minutes are too few to tell a bad memory from a bad moment."""
    looks = [Look(900.0 * each, counters={"ecc_correctable_volatile": 50.0 * each}) for each in range(5)]
    assert over_time(looks, {})["ecc_correctable_per_hour"] == 200.0


@pytest.mark.parametrize(("limits", "expected"), [({"pcie_width_max": 16.0}, 0.5), ({}, None)])
def test_replays_are_told_per_lane(limits, expected):
    """Without the width, the value is unknown."""
    looks = [Look(0.0, counters={"pcie_replays": 0.0}), Look(60.0, counters={"pcie_replays": 80.0})]
    assert over_time(looks, limits).get("pcie_replays_per_lane_min") == expected


@cases(
    ("slow", "expected"),
    [
        ((True,), None),
        ((False, False), 0.0),
        ((False, True), 30.0),
        ((True, False, True), 60.0),
        ((True, True, True), 120.0),
        ((True,) * 30, 600.0),
        ((True,) * 20 + (False,) * 10, 30.0),
    ],
)
def test_the_time_of_slowdowns_is_that_between_looks(slow, expected):
    """A single look proves no duration, and looks of more than ten minutes ago do not count."""
    looks = [Look(60.0 * each, slowed_down=each_is) for each, each_is in enumerate(slow)]
    assert over_time(looks, {}).get("slowed_down_s") == expected


def test_no_look_is_no_slowdown():
    """Without a reading there is no slowdown and no error."""
    assert slowed_down_s([]) == 0.0


@pytest.mark.parametrize(
    ("values", "highest", "lowest"),
    [
        ((0.5, 0.5), None, None),
        ((0.5, 0.5, 0.5), 0.5, 0.5),
        ((0.5, None, 0.5, None, 0.6), 0.6, 0.5),
        ((0.1, 1.0, 0.5, 0.5, 0.6), 0.6, 0.5),
    ],
)
def test_a_state_of_the_moment_must_last(values, highest, lowest):
    """Three readings must agree: the best counts for speed, the lowest for unowned memory."""
    looks = [
        Look(15.0 * each, sm_clock_share=value, pcie_share=value, unowned_bytes=value)
        for each, value in enumerate(values)
    ]
    numbers = over_time(looks, {})
    assert (numbers.get("sm_clock_share"), numbers.get("pcie_share")) == (highest, highest)
    assert numbers.get("memory_unowned_bytes") == lowest


@cases(
    ("states", "numbers", "clock", "pcie"),
    [
        ({"unhindered": True}, {"utilisation_percent": 100.0}, 0.5, 0.25),
        ({"unhindered": False}, {"utilisation_percent": 100.0}, None, 0.25),
        ({"unhindered": None}, {"utilisation_percent": 100.0}, None, 0.25),
        ({"unhindered": True}, {"utilisation_percent": 89.0}, None, None),
        ({"unhindered": True}, {}, None, None),
        ({"unhindered": True, "limits": {}}, {"utilisation_percent": 100.0}, None, None),
        ({"unhindered": True, "limits": dict.fromkeys(LIMITS, 0.0)}, {"utilisation_percent": 100.0}, None, None),
    ],
)
def test_clock_and_link_are_looked_at_under_load_only(states, numbers, clock, pcie):
    """An idle device saves power, and one with a power cap or a chosen clock does as it is told."""
    now = {"sm_clock_mhz": 1000.0, "pcie_generation": 4.0, "pcie_width": 8.0} | numbers
    look = look_at(DeviceReading(**{"index": 0, "numbers": now, "limits": LIMITS} | states), 0.0)
    assert (look.sm_clock_share, look.pcie_share) == (clock, pcie)


def test_a_share_has_no_more_digits_than_its_parts():
    """1755 of 1980 MHz: seventeen digits would travel and be stored four times a minute for each device."""
    numbers = {"sm_clock_mhz": 1755.0, "utilisation_percent": 100.0}
    device = DeviceReading(index=0, numbers=numbers, limits={"sm_clock_max_mhz": 1980.0}, unhindered=True)
    assert look_at(device, 0.0).sm_clock_share == 0.8864


@cases(
    ("processes", "utilisation", "expected"),
    [(0, 0.0, 5.0), (1, 0.0, 0.0), (0, 3.0, 0.0), (None, 0.0, None), (0, None, None)],
)
def test_memory_is_unowned_only_where_nobody_works(processes, utilisation, expected):
    """A process that the driver does not show here, as in a container, shows as utilisation."""
    numbers = {"memory_used_bytes": 5.0} | ({} if utilisation is None else {"utilisation_percent": utilisation})
    assert look_at(DeviceReading(index=0, processes=processes, numbers=numbers), 0.0).unowned_bytes == expected


def reading(uuid="GPU-0", **numbers):
    return DeviceReading(index=0, uuid=uuid, numbers=numbers)


def test_a_device_in_the_place_of_another_starts_from_nothing():
    """Its counters are not compared with those of the earlier device."""
    history = History()
    history.remember([reading(nvlink_crc_errors=0.0)], 0.0)
    (exchanged,) = history.remember([reading("GPU-1", nvlink_crc_errors=1e6)], 60.0)
    assert "nvlink_crc_errors_per_s" not in exchanged.numbers
    (again,) = history.remember([reading("GPU-1", nvlink_crc_errors=1e6 + 600)], 120.0)
    assert again.numbers["nvlink_crc_errors_per_s"] == 1.0


def test_a_device_that_is_lost_in_between_keeps_its_history():
    """It says nothing while it is lost, and what it counted in the meantime is seen afterwards."""
    history = History()
    history.remember([reading(nvlink_crc_errors=0.0)], 0.0)
    lost = DeviceReading(index=0, lost=True)
    assert history.remember([lost], 60.0) == (lost,)
    (back,) = history.remember([reading(nvlink_crc_errors=600.0)], 120.0)
    assert back.numbers["nvlink_crc_errors_per_s"] == 1.0


def test_memory_is_bounded():
    """However often somebody looks, and however many devices come and go."""
    history = History()
    for each in range(2 * MOST_LOOKS):
        history.remember([reading(nvlink_crc_errors=float(each))], each / 1000)
    assert len(history._looks["GPU-0"]) == MOST_LOOKS
    for each in range(100):
        history.remember([reading(f"GPU-{each}")], 10.0 + 3601.0 * each)
    assert list(history._looks) == ["GPU-99"]
