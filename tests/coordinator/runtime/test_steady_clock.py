"""The coordinator's clock follows a step of the host's clock slowly, and never goes back."""

import pytest

from muster_coordinator.runtime.steady_clock import SteadyClock

HOUR_S = 3600.0


class Host:
    """The clocks of a host: one that somebody sets, and one that nobody can."""

    def __init__(self):
        self.wall = 1_000_000.0
        self.steady = 50.0

    def passes(self, seconds):
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def host():
    return Host()


@pytest.fixture
def clock(host):
    return SteadyClock(lambda: host.wall, lambda: host.steady)


def test_it_agrees_with_a_clock_that_nobody_sets(host, clock):
    """For as long as it goes."""
    for _ in range(1000):
        host.passes(0.25)
        assert clock() == pytest.approx(host.wall, abs=1e-6)


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S, 10.0, -10.0])
def test_a_step_is_followed_at_half_the_pace(host, clock, step_s):
    """Whatever is measured with it takes two thirds to twice as long, until both clocks agree again."""
    clock()
    host.wall += step_s
    before, took_s = clock(), 0.0
    while abs(before - host.wall) > 1e-3:
        host.passes(0.25)
        took_s += 0.25
        now = clock()
        assert now - before == pytest.approx(0.375 if step_s > 0 else 0.125, abs=0.13)
        assert now > before
        before = now
        assert took_s < 3 * abs(step_s)
    assert took_s == pytest.approx(2 * abs(step_s), abs=1)


def test_a_clock_that_is_set_and_set_back_was_hardly_off(host, clock):
    """Such as by a wrong time server."""
    clock()
    host.wall += HOUR_S
    host.passes(10.0)
    assert clock() == pytest.approx(1_000_015.0)
    host.wall -= HOUR_S
    host.passes(10.0)
    assert clock() == pytest.approx(host.wall)


def test_a_step_is_logged_once(host, clock, capsys):
    """With what to expect; not a correction of some seconds."""
    for _ in range(3):
        host.wall += 20.0
        clock()
        host.passes(100.0)
        clock()
    assert "clock_was_set" not in capsys.readouterr().out
    host.wall += HOUR_S
    for _ in range(100):
        host.passes(0.25)
        clock()
    text = capsys.readouterr().out
    assert text.count("clock_was_set") == 1
    assert "by_s=3600" in text
    assert "followed_within_s=7200" in text
