"""The actor of the plugin `script` is run for alarms if the settings ask for it, with real executables."""

import json
import os
import re
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from muster.alarm import Alarm, AlarmKind
from muster.config import Config, Settings
from muster.plugins import GROUP, HookAnswer, load
from muster_plugins.shared.alarm_document import alarm_document

BEGUN = Alarm(kind=AlarmKind.ACTION, subject="slurm", text="slurm does not drain n017: no answer within 4 s", since=1.0)
OVER = BEGUN.model_copy(update={"text": "slurm drains again", "ended_at": 2.0})
GUIDE = Path(__file__).parents[4] / "docs" / "how-to" / "webhooks.md"


@pytest.fixture
def told(live: None, tmp_path: Path) -> Callable[..., Any]:
    """Tells an alarm to a script of this text, with these settings."""

    async def tell(text: str, alarm: Alarm = BEGUN, **settings: Any) -> HookAnswer:
        path = tmp_path / "changed"
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        table = {"actor": {"path": str(path), **settings}}
        config = Config(Settings.model_validate({"fleet": "prod", "plugins": {"script": table}}))
        plugins = load(config, entry_points(group=GROUP, name="script"))
        (answer,) = await plugins.call_each("muster_alarm", 10, alarm=alarm)
        assert answer.error is None
        return answer

    return tell


@pytest.mark.parametrize("alarm", [BEGUN, OVER])
async def test_it_gets_the_alarm(told, tmp_path, alarm):
    """As JSON on stdin, when it begins and when it is over; the environment says that it is no transition."""
    script = f"cat > {tmp_path}/given; env > {tmp_path}/env; echo paged"
    outcome = (await told(script, alarm, alarms=True, can_cordon=True)).value
    assert (outcome.effect, outcome.detail, outcome.only_tells) == ("DONE", "exit code 0: paged", True)
    given = json.loads((tmp_path / "given").read_text())
    assert given == alarm_document("prod", alarm)
    assert (given["kind"], given["over"]) == ("ACTION", alarm is OVER)
    environment = (tmp_path / "env").read_text().splitlines()
    assert "MUSTER_ALARM=ACTION" in environment
    assert "MUSTER_NODE" not in "".join(environment)


@pytest.mark.parametrize("settings", [{}, {"alarms": False}])
async def test_a_script_that_knows_only_transitions_gets_no_alarm(told, tmp_path, settings):
    """One that was written before would take an alarm for a change of a node."""
    assert (await told(f"touch {tmp_path}/ran", **settings)).value is None
    assert not (tmp_path / "ran").exists()


async def test_a_failure_is_reported_and_a_dry_run_runs_nothing(told, tmp_path):
    """The coordinator notifies again after a failure."""
    failed = (await told("echo no route; exit 75", alarms=True)).value
    assert (failed.effect, failed.detail) == ("FAILED", "exit code 75: no route")
    dry = (await told(f"touch {tmp_path}/ran", BEGUN.model_copy(update={"dry_run": True}), alarms=True)).value
    assert (dry.effect, (tmp_path / "ran").exists()) == ("WOULD", False)
    assert dry.detail == f"would run {tmp_path / 'changed'} for the alarm: {BEGUN.text}"


async def test_the_lines_that_the_guide_shows_mail_the_alarm(told, tmp_path, monkeypatch):
    """With the kind as the subject and the JSON as the text."""
    blocks = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (lines,) = (block for block in blocks if "MUSTER_ALARM" in block)
    mail = tmp_path / "mail"
    mail.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments; cat > {tmp_path}/text\n')
    mail.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert (await told(f"{lines}exit 1", alarms=True)).value.effect == "DONE"
    assert (tmp_path / "arguments").read_text().splitlines() == ["-s", "muster: ACTION", "oncall@example.com"]
    assert json.loads((tmp_path / "text").read_text())["text"] == BEGUN.text
