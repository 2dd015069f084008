"""When background checks are due."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agent_settings import AgentSettings
from muster.check import AnyCheck, Check, Params, Scope
from muster.config import CheckSettings
from muster.errors import Refused, SettingsError
from muster.model import Measurement
from muster_agent.decide.plan import PlannedCheck, announced
from muster_agent.decide.schedule import SLOWEST_S, CheckSchedule, beats_apart, spread
from muster_agent.runs.plan_settings import make_plan, memory_limit_bytes, resident_limit_bytes

SPREAD_S = 30.0


class Size(Params):
    size: int = 1


class Book(Params):
    title: str


def make_check(name: str = "simulated", cadence_s: float | None = None, params: type[Params] = Size) -> AnyCheck:
    return Check(
        name=name,
        summary="",
        scope=Scope.NODE,
        params=params,
        measure=lambda _params, _context: Measurement(),
        judge=lambda _measurement, _references: [],
        timeout_s=30.0,
        cadence_s=cadence_s,
    )


def schedule_of(now: float = 0.0, node: str = "n", **intervals: float | None) -> CheckSchedule:
    plan = {
        name: PlannedCheck(check=make_check(name), params=Size(), timeout_s=30.0, interval_s=interval_s)
        for name, interval_s in intervals.items()
    }
    return CheckSchedule(node, plan, now, spread_s=SPREAD_S)


def test_the_first_run_is_within_the_spread_and_then_every_interval():
    """A beat is kept, whatever a run takes, as long as it ends before the next."""
    schedule = schedule_of(a=100.0)
    first = schedule.next_due()
    assert 0 <= first < SPREAD_S
    assert schedule.tick(first) == ["a"]
    schedule.ended("a", first + 7)
    assert schedule.next_due() == pytest.approx(first + 100)


@given(st.text(min_size=1), st.text(min_size=1), st.floats(0.1, 1e6))
def test_short_intervals_start_soon(node, name, interval_s):
    """No first run is later than one interval, and none later than the widest spread."""
    plan = {name: PlannedCheck(check=make_check(), params=Size(), timeout_s=1.0, interval_s=interval_s)}
    assert CheckSchedule(node, plan, 0.0, spread_s=SPREAD_S).next_due() <= min(interval_s, SPREAD_S)


def test_nodes_and_checks_are_spread_and_a_restart_changes_nothing():
    """The share follows from the names only, and many nodes share the time evenly."""
    assert spread("n1", "gemm") == spread("n1", "gemm") != spread("n1", "nvml")
    shares = sorted(spread(f"node-{number}", "gemm") for number in range(1000))
    assert shares[0] < 0.02
    assert 0.45 < shares[500] < 0.55
    assert 0.98 < shares[-1] < 1


def test_a_check_never_runs_twice_at_once():
    """While it runs, it is not due."""
    schedule = schedule_of(a=10.0)
    assert schedule.tick(50.0) == ["a"]
    assert schedule.tick(100.0) == []
    assert schedule.next_due() == math.inf


def test_a_run_that_outlasts_its_interval_misses_beats():
    """The next run is on the next beat, not at once and not for each one missed."""
    schedule = schedule_of(a=10.0)
    first = schedule.next_due()
    schedule.tick(first)
    schedule.ended("a", first + 34)
    assert schedule.next_due() == pytest.approx(first + 40)


def test_a_hastened_check_runs_at_once_and_keeps_its_beat():
    """The run beside the beats moves none of them."""
    schedule = schedule_of(a=100.0)
    first = schedule.next_due()
    schedule.tick(first)
    schedule.ended("a", first + 1)
    schedule.hasten("a", first + 40)
    assert schedule.next_due() == first + 40
    assert schedule.tick(first + 40) == ["a"]
    schedule.ended("a", first + 41)
    assert schedule.next_due() == pytest.approx(first + 100)


def test_what_happens_during_a_run_hastens_the_next():
    """The present run may have looked already; the next starts a second after it at the earliest."""
    schedule = schedule_of(a=100.0)
    schedule.hasten("a", 40.0)
    assert schedule.tick(40.0) == ["a"]
    schedule.hasten("a", 40.1)
    schedule.hasten("a", 40.2)
    assert schedule.next_due() == math.inf
    schedule.ended("a", 40.3)
    assert schedule.next_due() == 41.0
    assert schedule.tick(41.0) == ["a"]


def test_what_happens_just_after_a_beat_hastens_at_once():
    """Only hastened runs keep apart: a beat that has just been is no reason to wait."""
    schedule = schedule_of(a=100.0)
    first = schedule.next_due()
    schedule.tick(first)
    schedule.ended("a", first + 0.1)
    schedule.hasten("a", first + 0.2)
    assert schedule.next_due() == first + 0.2


def test_a_storm_of_events_costs_a_run_a_second():
    """Each of 1,000 events within ten seconds hastens the check; it runs ten times or eleven."""
    schedule = schedule_of(a=1000.0)
    schedule.tick(30.0)
    schedule.ended("a", 30.0)
    runs = 0
    for event in range(1000):
        now = 100.0 + event / 100
        schedule.hasten("a", now)
        for name in schedule.tick(now):
            runs += 1
            schedule.ended(name, now)
    assert 10 <= runs <= 11


def starts(schedule: CheckSchedule, end: float) -> list[float]:
    """When its only check, whose runs take no time, starts before `end`."""
    found: list[float] = []
    while (now := schedule.next_due()) < end:
        for name in schedule.tick(now):
            found.append(now)
            schedule.ended(name, now)
    return found


@pytest.mark.parametrize(
    ("interval_s", "slowdown", "beats"),
    [
        (15.0, 1, 1),
        (15.0, 3, 3),
        (60.0, 3, 3),
        (120.0, 3, 2),
        (300.0, 3, 1),
        (3600.0, 3, 1),
        (0.5, 3, 3),
        (1.0, 10**400, 300),
    ],
)
def test_a_slowdown_leaves_out_beats_but_not_for_long(interval_s, slowdown, beats):
    """A check runs on every third beat, say; never for that reason less often than each five minutes."""
    assert beats_apart(interval_s, slowdown) == beats
    assert beats == 1 or beats * interval_s <= SLOWEST_S


def test_a_check_that_is_slowed_down_keeps_its_beats():
    """It runs on some of them, beginning with the next run, and on all again when the slowdown is over."""
    every = starts(schedule_of(a=10.0), 400.0)
    schedule = schedule_of(a=10.0)
    before = starts(schedule, 100.0)
    schedule.slow_down(3)
    slowed = starts(schedule, 250.0)
    schedule.slow_down(1)
    again = starts(schedule, 400.0)
    assert [*before, *slowed, *again] == [at for at in every if at in before or at in slowed or at in again]
    assert len(slowed) == 5
    assert {round(later - at, 6) for at, later in pairwise(slowed)} == {30.0}
    assert {round(later - at, 6) for at, later in pairwise(again)} == {10.0}
    assert again[0] - slowed[-1] <= 30.0


def test_an_event_hastens_a_check_that_is_slowed_down():
    """What a watch sees is urgent, however overloaded the coordinator is."""
    schedule = schedule_of(a=60.0)
    starts(schedule, 100.0)
    schedule.slow_down(3)
    schedule.hasten("a", 100.0)
    assert schedule.tick(100.0) == ["a"]


def test_what_has_no_beat_is_not_hastened():
    """A check that is off or runs on demand only stays so."""
    schedule = schedule_of(a=None)
    schedule.hasten("a", 1.0)
    assert schedule.next_due() == math.inf


def test_what_is_due_comes_in_the_order_of_its_time():
    """Several checks may be due at one tick."""
    schedule = schedule_of(a=10.0, b=10.0, c=10.0)
    names = schedule.tick(30.0)
    assert sorted(names) == ["a", "b", "c"]
    assert names == sorted(names, key=lambda name: spread("n", name))


def test_a_check_without_an_interval_never_runs_by_itself():
    """It is there on demand only."""
    assert schedule_of(a=None).next_due() == math.inf


def test_the_settings_go_before_the_check():
    """Interval, deadline and parameters are the operator's where they are said, else the check's own."""
    checks = {"a": make_check("a", cadence_s=60.0), "b": make_check("b", cadence_s=60.0), "c": make_check("c")}
    settings = {
        "a": CheckSettings(interval_s=5.0, timeout_s=2.0, params={"size": 3}),
        "b": CheckSettings(enabled=False),
    }
    plan = make_plan(checks, settings, complete=True)
    assert {name: planned.interval_s for name, planned in plan.items()} == {"a": 5.0, "b": None, "c": None}
    assert (plan["a"].timeout_s, plan["b"].timeout_s) == (2.0, 30.0)
    assert plan["a"].params == Size(size=3)


def test_an_unknown_check_in_the_settings_is_refused():
    """The message names the nearest one."""
    with pytest.raises(SettingsError, match="unknown check 'simulate'; did you mean 'simulated'"):
        make_plan({"simulated": make_check()}, {"simulate": CheckSettings()}, complete=True)


def test_an_unknown_check_is_passed_over_when_a_plugin_failed():
    """It may be one of that plugin's, and the other checks should run."""
    assert make_plan({}, {"gemm": CheckSettings()}, complete=False) == {}


def test_wrong_parameters_in_the_settings_are_refused():
    """The message names the table and the parameter."""
    with pytest.raises(SettingsError, match=r"checks\.simulated\.params: .*sise"):
        make_plan({"simulated": make_check()}, {"simulated": CheckSettings(params={"sise": 3})}, complete=True)


def test_what_runs_on_demand_only_may_need_parameters():
    """Who asks for the run gives them; an interval without them is refused."""
    check = make_check("book", params=Book)
    assert make_plan({"book": check}, {}, complete=True)["book"].interval_s is None
    with pytest.raises(SettingsError, match=r"checks\.book\.params: .*title"):
        make_plan({"book": check}, {"book": CheckSettings(interval_s=5.0)}, complete=True)


def test_a_background_check_needs_no_parameters():
    """A plugin whose check would never run by itself is found out when it is loaded."""
    with pytest.raises(Refused, match="title"):
        make_check("book", cadence_s=60.0, params=Book)


def test_a_run_may_take_what_the_settings_say_else_half_of_the_memory():
    """The limit is in bytes."""
    assert memory_limit_bytes(AgentSettings(memory_limit_gib=1.5)) == 1536 * 2**20
    assert 2**26 < memory_limit_bytes(AgentSettings()) < 2**45


def test_a_resident_process_has_a_small_memory_limit():
    """Never more than a run: two of them run beside it."""
    assert resident_limit_bytes(512 << 30) == 1 << 30
    assert resident_limit_bytes(1 << 28) == 1 << 28


def test_a_check_is_announced_as_this_node_runs_it():
    """Interval and deadline are the settings'; one that is off runs on demand only."""
    checks = {"a": make_check("a", cadence_s=60.0), "b": make_check("b", cadence_s=60.0)}
    settings = {"a": CheckSettings(interval_s=5.0, timeout_s=2.0), "b": CheckSettings(enabled=False)}
    plan = make_plan(checks, settings, complete=True)
    assert [(info.name, info.cadence_s, info.timeout_s) for info in announced(plan)] == [
        ("a", 5.0, 2.0),
        ("b", None, 30.0),
    ]
