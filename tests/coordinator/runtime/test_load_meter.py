"""How much of what the agents send the coordinator can take."""

import pytest

from muster_coordinator.runtime.load_meter import LONG_S, OVERLOADED_AFTER_S, QUIET_S, LoadMeter

WALL = 1_000_000.0
"""The time of day at zero of the other clock."""


def played(meter, begin, end, *, deferred=0, waited_s=0.0, taken=0):
    """The load at `end`, if each half second from `begin` on is like this."""
    load, now = None, begin
    while now < end:
        now += 0.5
        meter.note_taken(taken)
        for _ in range(deferred):
            meter.note_deferred()
        meter.note_waited(waited_s)
        load = meter.measure(now, WALL + now)
    return load


def test_a_coordinator_that_keeps_up_is_not_overloaded():
    """It says how many reports it takes, and advises nothing."""
    load = played(LoadMeter(), 0.0, 60.0, taken=100, waited_s=0.9 * LONG_S)
    assert (load.overloaded_since, load.advice, load.deferred_per_s, load.slowdown) == (None, "", 0.0, 1)
    assert load.taken_per_s == pytest.approx(200.0)
    assert load.lag_s == pytest.approx(0.9 * LONG_S)


@pytest.mark.parametrize("sign", [{"deferred": 1}, {"waited_s": LONG_S}])
def test_signs_for_a_while_make_it_overloaded(sign):
    """Since the first of them: messages that wait for long, or reports that are deferred."""
    meter = LoadMeter()
    assert not played(meter, 0.0, OVERLOADED_AFTER_S, **sign).is_overloaded
    load = played(meter, OVERLOADED_AFTER_S, OVERLOADED_AFTER_S + 0.5, **sign)
    assert load.overloaded_since == pytest.approx(WALL + 0.5)


def test_it_says_by_how_much_and_what_to_do():
    """Three times as many reports come as are taken."""
    load = played(LoadMeter(), 0.0, 30.0, taken=50, deferred=100)
    assert (load.taken_per_s, load.deferred_per_s) == (pytest.approx(100.0), pytest.approx(200.0))
    assert "takes 100 reports a second and defers 200" in load.advice
    assert "interval_s" in load.advice
    assert load.slowdown == 2
    assert "run background checks 2 times less often" in load.advice


def test_a_start_at_which_all_nodes_report_is_no_overload():
    """It is short."""
    meter = LoadMeter()
    played(meter, 0.0, OVERLOADED_AFTER_S, deferred=10)
    assert not played(meter, OVERLOADED_AFTER_S, 60.0, taken=10).is_overloaded


def test_it_is_over_after_a_break():
    """A shorter break does not end it, and the next overload is a new one."""
    meter = LoadMeter()
    played(meter, 0.0, 30.0, deferred=1)
    again = 30.0 + QUIET_S - 0.5
    assert played(meter, 30.0, again - 0.5).is_overloaded
    assert played(meter, again - 0.5, again, deferred=1).overloaded_since == pytest.approx(WALL + 0.5)
    end = again + QUIET_S
    assert not played(meter, again, end).is_overloaded
    assert played(meter, end, end + 30.0, deferred=1).overloaded_since == pytest.approx(WALL + end + 0.5)


def test_our_own_heartbeat_shows_how_long_messages_wait_at_the_broker():
    """Also while it is not back yet. One that the broker has dropped counts until a later one is back."""
    meter = LoadMeter()
    meter.note_heartbeat("first", -10.0)
    meter.note_echo("first", -9.5)
    meter.note_heartbeat("a", 0.0)
    assert meter.measure(4.0, WALL).lag_s == 4.0
    meter.note_heartbeat("b", 10.0)
    assert meter.measure(11.0, WALL).lag_s == 11.0
    meter.note_echo("b", 12.0)
    assert meter.measure(13.0, WALL).lag_s == 2.0
    meter.note_echo("a", 14.0)  # it cannot come any more
    assert meter.measure(14.0, WALL).lag_s == 2.0


def test_a_broker_that_sends_no_heartbeat_back_is_not_slow():
    """Its access list does not let us read them. Otherwise no node would ever be lost."""
    meter = LoadMeter()
    for number in range(60):
        meter.note_heartbeat(str(number), 10.0 * number)
    assert meter.measure(600.0, WALL).lag_s == 0.0


def test_a_new_connection_begins_anew():
    """Heartbeats from before do not come back, and say nothing about it."""
    meter = LoadMeter()
    meter.note_heartbeat("first", -10.0)
    meter.note_echo("first", -8.0)
    meter.note_heartbeat("a", 0.0)
    meter.note_connected()
    assert meter.measure(30.0, WALL).lag_s == 0.0


def test_heartbeats_that_never_come_back_are_bounded():
    """A broker that drops all of them does not fill the memory."""
    meter = LoadMeter()
    meter.note_heartbeat("first", -1.0)
    meter.note_echo("first", -1.0)
    for number in range(10_000):
        meter.note_heartbeat(str(number), float(number))
    assert meter.measure(10_000.0, WALL).lag_s == 100.0
