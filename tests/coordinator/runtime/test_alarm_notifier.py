"""Alarms are logged, and plugins told of them: once, again while they fail, and only the latest."""

import asyncio
from typing import Any

import pytest
import structlog
from tests.waiting import PATIENCE_S

from muster import hookimpl
from muster.alarm import Alarm, AlarmKind
from muster.config import Config, Settings
from muster.plugins import Plugins
from muster.transition import ActionOutcome, Effect
from muster.wire.messages import PluginInfo
from muster_coordinator.model.quarantine_events import AlarmDelivered, AlarmTaken
from muster_coordinator.runtime import alarm_notifier
from muster_coordinator.runtime.alarm_notifier import AlarmNotifier

BEGUN = Alarm(kind=AlarmKind.ACTION, subject="slurm", text="slurm does not drain n1", since=1.0)
OVER = BEGUN.model_copy(update={"text": "slurm drains again", "ended_at": 2.0})
OTHER = Alarm(kind=AlarmKind.PERSON, subject="n1", text="n1 was drained 4 times", since=1.0)


class Pager:
    """A plugin that is told of alarms; while `is_open` is not set it hangs, and it fails `failures` times."""

    def __init__(self):
        self.calls: list[Alarm] = []
        self.failures = 0
        self.is_open = asyncio.Event()
        self.is_open.set()

    @hookimpl
    async def muster_alarm(self, alarm):
        self.calls.append(alarm)
        await self.is_open.wait()
        if self.failures:
            self.failures -= 1
            return ActionOutcome(effect=Effect.FAILED, detail="HTTP 503")
        return ActionOutcome(effect=Effect.DONE, detail="told")


class Broken:
    """A plugin that raises."""

    @hookimpl
    async def muster_alarm(self):
        raise OSError("no route")


class Silent:
    """A plugin that has nothing to do with alarms."""

    @hookimpl
    async def muster_close(self):
        pass


@pytest.fixture
def pager():
    return Pager()


@pytest.fixture
def delivered() -> list[AlarmTaken | AlarmDelivered]:
    """What the quarantine hears of alarms that plugins took."""
    return []


@pytest.fixture
async def notifier(pager, delivered, monkeypatch):
    """Tells the pager, beside a broken plugin and one that is not told; its waits are short."""
    monkeypatch.setattr(alarm_notifier, "FIRST_RETRY_S", 0.001)
    plugins = Plugins(Config(Settings()))
    kinds: dict[str, Any] = {"broken": Broken, "pager": lambda: pager, "silent": Silent}
    for name, make in kinds.items():
        plugins.add(PluginInfo(name=name, distribution=None, version=None, status="loaded"), make)
    notifier = AlarmNotifier(plugins, delivered.append)
    task = asyncio.create_task(notifier.run())
    yield notifier
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def until(is_so):
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.001)


async def settled(notifier: AlarmNotifier) -> None:
    """Returns when the pager has taken all that it is to be told."""
    await until(lambda: not [job for job in notifier._latest if job[0] == "pager"])


def test_alarms_are_logged():
    """A begin is a warning, an end information; both say what they are about."""
    notifier = AlarmNotifier(Plugins(Config(Settings())), lambda event: None)
    with structlog.testing.capture_logs() as logged:
        notifier.send(BEGUN)
        notifier.send(OVER)
    begun: dict[str, Any] = {"event": "quarantine_alarm", "kind": "ACTION", "subject": "slurm", "dry_run": False}
    assert logged == [
        begun | {"log_level": "warning", "text": BEGUN.text, "over": False},
        begun | {"log_level": "info", "text": OVER.text, "over": True},
    ]


async def test_begin_and_end_are_told_once(notifier, pager):
    """Whatever becomes of other plugins."""
    for alarm in (BEGUN, OVER):
        notifier.send(alarm)
        await settled(notifier)
    assert pager.calls == [BEGUN, OVER]


async def test_what_fails_is_told_again(notifier, pager):
    """Until it is taken, and then no more."""
    pager.failures = 3
    notifier.send(BEGUN)
    await settled(notifier)
    assert pager.calls == [BEGUN] * 4


async def test_what_is_over_is_not_told_as_begun(notifier, pager, monkeypatch):
    """The begin that failed gives way to the end at once, however long it was to wait."""
    monkeypatch.setattr(alarm_notifier, "FIRST_RETRY_S", 3600.0)
    monkeypatch.setattr(alarm_notifier, "LONGEST_RETRY_S", 3600.0)
    pager.failures = 1
    notifier.send(BEGUN)
    await until(lambda: pager.failures == 0)
    notifier.send(OVER)
    await settled(notifier)
    assert pager.calls == [BEGUN, OVER]


async def test_what_changes_while_it_is_told_is_told_after_that(notifier, pager):
    """In its order, and no call beside another for the same alarm."""
    pager.is_open.clear()
    notifier.send(BEGUN)
    await until(lambda: pager.calls)
    notifier.send(OVER)
    await asyncio.sleep(0)
    assert pager.calls == [BEGUN]
    pager.is_open.set()
    await settled(notifier)
    assert pager.calls == [BEGUN, OVER]


async def test_one_alarm_does_not_wait_for_another(notifier, pager):
    """Also while a plugin takes its time over one."""
    pager.is_open.clear()
    notifier.send(BEGUN)
    notifier.send(OTHER)
    await until(lambda: len(pager.calls) == 2)
    pager.is_open.set()
    await settled(notifier)
    assert {alarm.subject for alarm in pager.calls} == {"slurm", "n1"}


async def test_who_took_an_alarm_is_reported(notifier, pager, delivered):
    """It is delivered only when all took it, and the broken one never does."""
    notifier.send(BEGUN)
    await settled(notifier)
    assert delivered == [AlarmTaken(alarm=BEGUN, plugin="pager")]


async def test_an_alarm_that_all_took_is_delivered(pager, delivered):
    """Once, with the latest of what was told."""
    plugins = Plugins(Config(Settings()))
    plugins.add(PluginInfo(name="pager", distribution=None, version=None, status="loaded"), lambda: pager)
    notifier = AlarmNotifier(plugins, delivered.append)
    notifier.send(BEGUN)
    notifier.send(OVER)
    task = asyncio.create_task(notifier.run())
    await settled(notifier)
    task.cancel()
    assert delivered == [AlarmTaken(alarm=OVER, plugin="pager"), AlarmDelivered(alarm=OVER)]


async def test_after_a_restart_only_the_others_are_told(notifier, pager, delivered):
    """And nothing is logged again. Without any other it is delivered."""
    with structlog.testing.capture_logs() as logged:
        notifier.enqueue(BEGUN, ("pager",))
        notifier.enqueue(OTHER, ("pager", "broken"))
        await until(lambda: any(line["event"] == "alarm_not_taken" for line in logged))
    assert (pager.calls, delivered) == ([], [AlarmDelivered(alarm=OTHER)])
    assert "quarantine_alarm" not in {line["event"] for line in logged}
