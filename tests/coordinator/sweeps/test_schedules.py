"""Which sweeps begin by schedule, played in virtual time."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.cases import cases
from tests.coordinator.sweeps.clock import DAY, HOUR, NIGHTLY, START, Clock, past, scheduled, timetable

from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.sweeps.schedule import GRACE_S
from muster_coordinator.sweeps.timetable import Due, SkippedSweep


def test_a_schedule_over_months_begins_once_at_each_of_its_times():
    """Half a year of nights in Berlin: each has one sweep, between 02:00 and 02:05 there, also when clocks change."""
    clock = Clock(scheduled(timezone="Europe/Berlin")).resume()
    assert len(clock.play(181 * DAY)) == 181
    for at, due in clock.said:
        moment = datetime.fromtimestamp(at, ZoneInfo("Europe/Berlin"))
        assert moment.hour == (3 if (moment.month, moment.day) == (3, 29) else 2)  # there is no 02:00 that night
        assert moment.minute <= 6
        assert due == Due("schedule nightly", SweepRequest(check="collective", max_parallel="10%"))


def test_jitter_differs_from_time_to_time_and_is_the_same_in_a_replay():
    """It is drawn from the fleet, the schedule and the time, and nothing else."""

    def late(**settings: Any) -> list[float]:
        clock = Clock(scheduled(jitter_s=HOUR, **settings)).resume()
        clock.play(10 * DAY, step=10.0)
        return [at % DAY - 2 * HOUR for at, _ in clock.said]

    assert late() == late()
    assert len(set(late())) == 10
    assert all(0 <= seconds <= HOUR + 10 for seconds in late())
    assert min(late()) < 0.3 * HOUR < 0.7 * HOUR < max(late())


def test_without_jitter_it_begins_on_the_minute():
    """For those who want it."""
    clock = Clock(scheduled(jitter_s=0)).resume()
    clock.play(2 * DAY)
    assert clock.times == ["01-02 02:00", "01-03 02:00"]


def test_jitter_beyond_the_interval_loses_nothing():
    """No sweep is put off beyond the next one's time: each of the ten minutes has one of its own."""
    clock = Clock(scheduled(cron="*/10 * * * *", jitter_s=HOUR)).resume(past("schedule nightly", START - 1.0))
    clock.play(10 * DAY, step=1.0)
    assert [int(at - 1.0) // 600 for at, _ in clock.said] == [*range(int(START) // 600, int(START) // 600 + 1440)]


def test_nothing_is_due_before_it_has_resumed():
    """What was begun before is not known yet."""
    assert Clock(scheduled()).play(3 * DAY, step=HOUR) == []


def test_a_disabled_schedule_never_begins():
    """It stays in the settings."""
    assert Clock(scheduled(enabled=False)).resume().play(3 * DAY) == []


@cases(
    ("back_at", "last", "begins"),
    [
        pytest.param(1.9, None, ["01-02 02:00"], id="down before its time"),
        pytest.param(2.1, None, ["01-02 02:07"], id="missed while the coordinator was updated"),
        pytest.param(2.1, 2.0, [], id="begun before the coordinator was updated"),
        pytest.param(2.1, 99.0, [], id="begun by a coordinator with a clock that was ahead"),
        pytest.param(2.1, -22.0, ["01-02 02:07"], id="begun the day before"),
        pytest.param(3.0, None, [], id="missed in a longer absence"),
        pytest.param(3.0, -22.0, [], id="missed in a longer absence, begun the day before"),
    ],
)
def test_after_a_restart(back_at, last, begins):
    """What was begun is not begun again; what was missed is made up for within a short grace. Hours since midnight."""
    midnight = START + 12 * HOUR
    sweeps = [] if last is None else [past("schedule nightly", midnight + last * HOUR), past("request", midnight)]
    clock = Clock(scheduled(jitter_s=0), now=midnight + back_at * HOUR).resume(*sweeps)
    clock.play(20 * HOUR)
    assert clock.times == begins


def test_a_restart_within_the_jitter_begins_at_the_time_that_was_drawn():
    """Neither sooner nor twice nor never."""
    undisturbed = Clock(scheduled(jitter_s=HOUR)).resume()
    undisturbed.play(DAY, step=1.0)
    ((begins, _),) = undisturbed.said
    restarted = Clock(scheduled(jitter_s=HOUR), now=begins - 10.0).resume()
    restarted.play(DAY - HOUR, step=1.0)
    assert [at for at, _ in restarted.said] == [begins]


def test_of_the_last_sweeps_the_latest_counts():
    """In whatever order they are stored."""
    two = START + 14 * HOUR
    clock = Clock(scheduled(jitter_s=0), now=two + 60.0)
    clock.resume(past("schedule nightly", two), past("schedule nightly", two - DAY))
    assert clock.play(DAY - HOUR) == []


def test_a_schedule_does_not_pile_up():
    """While its last sweep goes on, the next is passed over and said so; afterwards it goes on as before."""
    clock = Clock(scheduled(jitter_s=0)).resume()
    clock.running.add("schedule nightly")
    assert clock.play(DAY) == [SkippedSweep("schedule nightly", "the sweep before it is still running")]
    clock.running = {"request", "schedule other"}
    (due,) = clock.play(DAY)
    assert isinstance(due, Due)


def test_what_was_slept_through_is_passed_over_once():
    """A host that was suspended for three nights begins none of them, and the fourth at its time."""
    clock = Clock(scheduled(jitter_s=0)).resume()
    (over,) = clock.play(3 * DAY, step=3 * DAY)
    assert over == SkippedSweep(
        "schedule nightly", f"no coordinator ran when it was due {3 * DAY - 14 * HOUR:.0f} s ago"
    )
    clock.play(DAY)
    assert clock.times[1:] == ["01-05 02:00"]


@pytest.mark.parametrize("asleep", [GRACE_S, DAY])
def test_of_several_times_that_were_missed_only_the_last_is_made_up_for(asleep):
    """Whether the coordinator was held up or restarted: nobody wants ten sweeps at once."""
    minutely = {"cron": "* * * * *", "jitter_s": 0}
    held_up = Clock(scheduled(**minutely)).resume(past("schedule nightly", START))
    assert len(held_up.play(asleep, step=asleep)) == 1
    restarted = Clock(scheduled(**minutely), now=START + asleep).resume(past("schedule nightly", START))
    assert [type(it) for it in restarted.play(30.0, step=1.0)] == [Due]


def test_a_tick_within_the_grace_still_begins():
    """A loop that was held up for minutes is no absence."""
    clock = Clock(scheduled(jitter_s=0), now=START + 14 * HOUR - 1.0).resume()
    (due,) = clock.play(GRACE_S, step=GRACE_S)
    assert isinstance(due, Due)


def test_schedules_are_independent():
    """Each has its own times, request and last sweep."""
    both = {"nightly": NIGHTLY, "weekly": {"check": "collective", "cron": "0 2 * * SUN", "strategy": "round_robin"}}
    clock = Clock(timetable(schedules=both)).resume(past("schedule weekly", START - 60.0))
    origins = [due.origin for due in clock.play(14 * DAY)]
    assert (origins.count("schedule nightly"), origins.count("schedule weekly")) == (14, 2)


def test_a_schedule_asks_for_what_the_settings_say():
    """Every field of a request can be set."""
    wanted = {
        "check": "collective",
        "params": {"size": 1},
        "strategy": "pairs",
        "pairing": "inter_rack",
        "passes": 2,
        "select": "rack=r1",
        "max_parallel": "25%",
        "max_rounds": 3,
        "max_node_s": 1e6,
        "priority": -5,
    }
    clock = Clock(timetable(schedules={"s": {**wanted, "cron": "0 2 * * *"}})).resume()
    (due,) = clock.play(DAY)
    assert due == Due("schedule s", SweepRequest.model_validate(wanted))
