"""How long XIDs stand."""

from muster_plugins.checks.nvml.standing_xids import MOST_STANDING, StandingXids

FATAL, APPLICATION = 79, 13


def standing(xids, now, window_s=3600.0):
    xids.forget(now, window_s)
    return {device: [tuple(xid) for xid in those] for device, those in xids.by_device().items()}


def test_an_xid_stands_for_its_window_after_the_last_one():
    """Quiet looks do not heal, but a window without another does."""
    xids = StandingXids()
    xids.note(0, APPLICATION, 0.0)
    xids.note(0, APPLICATION, 3000.0)
    assert standing(xids, 6000.0) == {0: [(APPLICATION, 2)]}
    assert standing(xids, 6601.0) == {}


def test_a_fatal_xid_stands_for_good():
    """Only a reset or a reboot heals what it tells of."""
    xids = StandingXids()
    xids.note(1, FATAL, 0.0)
    assert standing(xids, 1e7) == {1: [(FATAL, 1)]}


def test_devices_and_codes_are_counted_apart():
    """In the order in which they were last heard of; None is a device that nobody can name."""
    xids = StandingXids()
    for device, code in ((0, FATAL), (0, APPLICATION), (None, FATAL), (0, FATAL)):
        xids.note(device, code, 0.0)
    assert standing(xids, 0.0) == {0: [(APPLICATION, 1), (FATAL, 2)], None: [(FATAL, 1)]}


def test_memory_is_bounded():
    """A driver that reports ever new codes does not fill it; the last ones stay."""
    xids = StandingXids()
    for code in range(10 * MOST_STANDING):
        xids.note(0, code, 0.0)
    assert len(standing(xids, 0.0)[0]) == MOST_STANDING
    assert standing(xids, 0.0)[0][-1] == (10 * MOST_STANDING - 1, 1)
