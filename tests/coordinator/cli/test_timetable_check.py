"""What `muster config check` says about the sweeps that begin by themselves."""

import sys

import pytest

from muster.config import Config, Settings
from muster_coordinator.cli.timetable_check import timetable


def config(**sweeps) -> Config:
    return Config(Settings.model_validate({"sweeps": sweeps}))


def nightly(cron: str) -> dict[str, dict[str, str]]:
    return {"nightly": {"check": "collective", "cron": cron}}


@pytest.mark.parametrize(("cron", "refused"), [("0 2 * * *", False), ("61 2 * * *", True)])
def test_a_time_that_there_is_not_is_refused(muster, tmp_path, cron, refused):
    """Before the coordinator is started with it, and not only then."""
    settings = tmp_path / "muster.toml"
    settings.write_text(f'[sweeps.schedules.nightly]\ncheck = "collective"\ncron = "{cron}"\n')
    done = muster("config", "check", "--config", str(settings))
    assert ("OK" in done.stdout, "cannot read the minute: valid are 0 to 59" in done.stderr) == (not refused, refused)


def test_without_schedules_nothing_is_said():
    """Neither about what is set, nor about what could not be looked at."""
    assert list(timetable(config(), None)) == []
    assert list(timetable(config(schedules=nightly("0 2 * * *")), None)) == []


def test_where_there_is_no_coordinator_schedules_are_not_looked_at(monkeypatch):
    """An agent's install has nothing that could read them, and says so."""
    monkeypatch.delitem(sys.modules, "muster_coordinator.runtime.settings.timetable", raising=False)
    monkeypatch.setitem(sys.modules, "cronsim", None)
    for name in [name for name in sys.modules if name.startswith("muster_coordinator.sweeps.schedule")]:
        monkeypatch.delitem(sys.modules, name)
    (said,) = timetable(config(schedules=nightly("61 2 * * *")), None)
    assert said == "Schedules not checked: cronsim is not installed; install it: pip install 'gpu-muster[coordinator]'"
