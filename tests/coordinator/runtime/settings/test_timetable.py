"""The settings of sweeps that begin by themselves."""

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from tests.coordinator.sweeps.clock import DAY, Clock, scheduled, timetable

from muster.config import Settings
from muster.errors import SettingsError
from muster.sweep_settings import NewNodesSettings, ScheduleSettings, SweepSettings
from muster_coordinator.localize.strategies.pairs import Pairing
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.runtime.settings.timetable import timetable_of
from muster_coordinator.sweeps.timetable import Due


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
    guide = Path(__file__).parents[4] / "docs" / "how-to" / "scheduled-sweeps.md"
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
