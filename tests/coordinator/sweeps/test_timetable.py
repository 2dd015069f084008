"""Which sweeps begin by themselves, played in virtual time."""

import re
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest

from muster.check import CheckInfo, Needs, Scope
from muster.config import Settings
from muster.errors import SettingsError
from muster.model import Health, Topology
from muster.sweep_settings import NewNodesSettings, ScheduleSettings, SweepSettings
from muster_coordinator.localize.strategy import Pairing, Strategy
from muster_coordinator.node import Node
from muster_coordinator.sweep_records import SweepRecord, SweepRequest, SweepState
from muster_coordinator.sweeps.schedule import GRACE_S
from muster_coordinator.sweeps.timetable import REMEMBERED_S, Due, PassedOver, Timetable
from muster_coordinator.timetable_settings import timetable_of

HOUR, DAY = 3600.0, 86_400.0
START = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
NIGHTLY = {"check": "collective", "cron": "0 2 * * *"}


def timetable(**sweeps: Any) -> Timetable:
    return timetable_of(Settings.model_validate({"fleet": "lab", "sweeps": sweeps}))


def scheduled(**settings: Any) -> Timetable:
    return timetable(schedules={"nightly": {**NIGHTLY, **settings}})


def check(scope: Scope = Scope.GROUP) -> CheckInfo:
    return CheckInfo(
        name="collective",
        summary="",
        scope=scope,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=60.0,
        objective=None,
        params={},
    )


def past(origin: str, created_at: float, nodes: tuple[str, ...] = ("n1",)) -> SweepRecord:
    return SweepRecord(
        id="s",
        state=SweepState.FINISHED,
        strategy="pairs",
        check="collective",
        nodes=nodes,
        origin=origin,
        created_at=created_at,
    )


@dataclass
class Clock:
    """Plays a timetable from `now` on and keeps what it said, each with the time."""

    table: Timetable
    now: float = START
    nodes: dict[str, Node] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    said: list[tuple[float, Due | PassedOver]] = field(default_factory=list)

    def resume(self, *sweeps: SweepRecord) -> "Clock":
        self.table.resume(sweeps, self.nodes, self.now)
        return self

    def play(self, seconds: float, step: float = 60.0) -> list[Due | PassedOver]:
        """Ticks for so long; what was said meanwhile."""
        before, end = len(self.said), self.now + seconds
        while self.now < end:
            self.now = min(self.now + step, end)
            self.said += [(self.now, it) for it in self.table.tick(self.nodes, self.running, self.now)]
        return [it for _, it in self.said[before:]]

    def join(self, name: str, scope: Scope = Scope.GROUP, **settings: Any) -> Node:
        """A node whose agent has just said what it is made of."""
        node = Node(name, self.now, self.now, **settings)
        node.checks = {"collective": check(scope)}
        self.nodes[name] = node
        return node

    def join_as_new(self, name: str, scope: Scope = Scope.GROUP, **settings: Any) -> Node:
        self.table.note_joined(name)
        return self.join(name, scope, **settings)

    @property
    def times(self) -> list[str]:
        return [datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%M") for at, _ in self.said]


# Schedules


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


@pytest.mark.parametrize(
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
    assert clock.play(DAY) == [PassedOver("schedule nightly", "the one before it still goes on")]
    clock.running = {"request", "schedule other"}
    (due,) = clock.play(DAY)
    assert isinstance(due, Due)


def test_what_was_slept_through_is_passed_over_once():
    """A host that was suspended for three nights begins none of them, and the fourth at its time."""
    clock = Clock(scheduled(jitter_s=0)).resume()
    (over,) = clock.play(3 * DAY, step=3 * DAY)
    assert over == PassedOver("schedule nightly", f"nobody was there to begin it {3 * DAY - 14 * HOUR:.0f} s ago")
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


# New nodes


def gathering(**settings: Any) -> Clock:
    return Clock(timetable(new_nodes={"check": "collective", **settings})).resume()


def asked(said: list[Due | PassedOver]) -> list[tuple[str, ...] | None]:
    """The nodes of what is due, all for new ones."""
    assert all(isinstance(it, Due) and it.origin == "new nodes" for it in said)
    return [it.request.nodes for it in said if isinstance(it, Due)]


def test_new_nodes_are_swept_when_they_have_gathered():
    """Two minutes after the first, with all that have come by then, in one sweep, and never again."""
    clock = gathering()
    for name in ("b", "a", "c"):
        clock.join_as_new(name)
        assert clock.play(39, step=1.0) == []
    clock.join("known")
    assert asked(clock.play(DAY)) == [("a", "b", "c")]


def test_who_comes_later_is_gathered_by_itself():
    """The next nodes wait for others anew."""
    clock = gathering()
    clock.join_as_new("a"), clock.join_as_new("b")
    assert asked(clock.play(121, step=1.0)) == [("a", "b")]
    clock.join_as_new("c"), clock.join_as_new("d")
    assert clock.play(119, step=1.0) == []
    assert asked(clock.play(2, step=1.0)) == [("c", "d")]


def test_without_the_setting_new_nodes_are_not_swept():
    """Off unless set."""
    clock = Clock(timetable()).resume()
    clock.join_as_new("a"), clock.join_as_new("b")
    clock.table.note_swept(["a"])
    assert clock.play(DAY) == []


def test_a_node_is_new_from_when_it_says_that_it_has_the_check():
    """What it is made of comes after its first sign of life."""
    clock = gathering()
    late = clock.join_as_new("late")
    late.checks = {}
    clock.join_as_new("a"), clock.join_as_new("b")
    assert asked(clock.play(300, step=1.0)) == [("a", "b")]
    late.checks = {"collective": check()}
    clock.join_as_new("c")
    assert asked(clock.play(300, step=1.0)) == [("c", "late")]


def test_a_node_that_is_lost_again_is_left_out_until_it_is_back():
    """It neither takes part nor holds up the others, and gathers anew."""
    clock = gathering()
    lost = clock.join_as_new("lost")
    clock.play(60, step=1.0)
    lost.online = False
    clock.join_as_new("a"), clock.join_as_new("b")
    assert clock.play(119, step=1.0) == []
    assert asked(clock.play(5, step=1.0)) == [("a", "b")]
    lost.online = True
    clock.join_as_new("c")
    assert asked(clock.play(300, step=1.0)) == [("c", "lost")]


def test_a_node_that_another_sweep_has_taken_is_not_new_any_more():
    """Whoever asked for that sweep."""
    clock = gathering()
    clock.join_as_new("a"), clock.join_as_new("b"), clock.join_as_new("c")
    clock.table.note_swept(["a", "stranger"])
    assert asked(clock.play(300)) == [("b", "c")]


def test_a_single_new_node_meets_healthy_ones_near_it():
    """From its rack first, then from its leaf, then its block; none that is not known to be good."""
    clock = gathering(partners=3)
    place = Topology(block="b1", leaf="l1", rack="r1")
    clock.join("far", health=Health.HEALTHY, declared=Topology(block="b2", leaf="l9", rack="r9"))
    clock.join("block", health=Health.HEALTHY, declared=Topology(block="b1", leaf="l2", rack="r2"))
    clock.join("leaf", health=Health.HEALTHY, declared=Topology(block="b1", leaf="l1", rack="r3"))
    clock.join("rack", health=Health.HEALTHY, declared=place)
    clock.join("unknown", declared=place)
    clock.join("suspect", health=Health.SUSPECT, declared=place)
    clock.join("lost", health=Health.HEALTHY, declared=place, online=False)
    clock.join("without", health=Health.HEALTHY, declared=place).checks = {}
    clock.join_as_new("new", health=Health.HEALTHY, declared=place)
    assert asked(clock.play(HOUR)) == [("new", "rack", "leaf", "block")]


def test_a_single_new_node_waits_for_somebody_to_meet():
    """It is looked for again and again, and nothing is said meanwhile."""
    clock = gathering()
    clock.join_as_new("new")
    known = clock.join("known")
    assert clock.play(HOUR) == []
    known.health = Health.HEALTHY
    assert asked(clock.play(HOUR)) == [("new", "known")]


@pytest.mark.parametrize(("scope", "settings"), [(Scope.NODE, {}), (Scope.GROUP, {"strategy": "single"})])
def test_a_check_of_single_nodes_needs_no_partner(scope, settings):
    """Whether the check or the strategy is about nodes alone."""
    clock = gathering(**settings)
    clock.join("known", scope, health=Health.HEALTHY)
    clock.join_as_new("new", scope)
    assert asked(clock.play(HOUR)) == [("new",)]


def test_new_nodes_after_a_restart():
    """Who joined within a day and was in no sweep since is still new."""
    clock = Clock(timetable(new_nodes={"check": "collective"}), now=START - REMEMBERED_S - 1.0)
    clock.join("old")
    clock.now = START - HOUR
    for name in ("a", "b", "swept"):
        clock.join(name)
    clock.now = START
    clock.resume(past("request", START - 60.0, ("swept", "old")))
    assert asked(clock.play(HOUR)) == [("a", "b")]


# Settings


def test_limits_that_contradict_a_sweep_of_new_nodes_are_refused_at_the_start():
    """As those of schedules."""
    with pytest.raises(SettingsError, match=r"'sweeps.new_nodes': max_rounds 1 contradicts passes 2"):
        timetable(new_nodes={"check": "collective", "passes": 2, "max_rounds": 1})


@pytest.mark.parametrize("most", ["100%", "64"])
def test_a_schedule_of_the_whole_fleet_says_how_many_that_may_be(most):
    """All of them, or a number that the coordinator compares with what is there."""
    clock = Clock(scheduled(strategy="whole", max_parallel=most)).resume()
    assert clock.play(DAY) == [
        Due("schedule nightly", SweepRequest(check="collective", strategy="whole", max_parallel=most))
    ]


def test_settings_and_requests_have_the_same_fields():
    """Core cannot see the coordinator's model of a request; whatever can be asked for can be scheduled."""
    fields = SweepSettings.model_fields.keys()
    assert fields | {"nodes", "select"} == SweepRequest.model_fields.keys()
    assert ScheduleSettings.model_fields.keys() - fields == {"select", "cron", "timezone", "jitter_s", "enabled"}
    assert NewNodesSettings.model_fields.keys() - fields == {"gather_s", "partners"}
    same = SweepSettings(check="c"), SweepRequest(check="c")
    assert [getattr(same[0], name) for name in fields] == [getattr(same[1], name) for name in fields]


@pytest.mark.parametrize(("name", "words"), [("strategy", Strategy), ("pairing", Pairing)])
def test_settings_know_every_strategy_and_pairing(name, words):
    """The words are listed twice, and alike."""
    optional = SweepSettings.model_fields[name].annotation
    assert get_args(get_args(optional)[0]) == tuple(words)


def test_the_tables_that_are_shown_are_right():
    """The guide's can be used as they stand."""
    guide = Path(__file__).parents[3] / "docs" / "guides" / "scheduled-sweeps.md"
    tables = re.findall(r"^```toml\n(.*?)^```", guide.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(tables) == 2
    for table in tables:
        timetable_of(Settings.model_validate(tomllib.loads(table)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cron": "0 25 * * *"}, "setting 'sweeps.schedules.nightly.cron': cannot read the hour: valid are 0 to 23"),
        ({"cron": "0 25 * * *", "enabled": False}, "setting 'sweeps.schedules.nightly.cron': cannot read the hour"),
        ({"timezone": "Berlin"}, "setting 'sweeps.schedules.nightly.timezone': unknown time zone 'Berlin'"),
        ({"select": "rack="}, "setting 'sweeps.schedules.nightly.select': "),
        ({"passes": 3, "max_rounds": 1}, "setting 'sweeps.schedules.nightly': max_rounds 1 contradicts passes 3"),
        ({"strategy": "whole"}, "setting 'sweeps.schedules.nightly': max_parallel 10% contradicts strategy whole"),
    ],
)
def test_what_is_wrong_is_refused_at_the_start(settings, message):
    """Not in the night when it would begin."""
    with pytest.raises(SettingsError) as refused:
        scheduled(**settings)
    assert str(refused.value).startswith(message)
