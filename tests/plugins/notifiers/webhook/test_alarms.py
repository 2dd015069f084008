"""Alarms in each format, and which targets are told of them."""

from typing import Any

import pytest
from aiohttp import web
from tests.plugins.notifiers.webhook.servers import ALARM, ALARM_OVER, generic

from muster.alarm import Alarm, AlarmKind
from muster.transition import Effect
from muster_plugins.notifiers.webhook.alertmanager import alertmanager_alarm
from muster_plugins.notifiers.webhook.notice import AlarmNotice
from muster_plugins.notifiers.webhook.pagerduty import pagerduty_alarm
from muster_plugins.notifiers.webhook.slack import slack_alarm
from muster_plugins.shared.alarm_document import alarm_document

LINK = "https://muster.example/quarantine#alarms"


def notice(alarm: Alarm = ALARM, link: str | None = None, **changed) -> AlarmNotice:
    return AlarmNotice(fleet="prod", alarm=alarm.model_copy(update=changed), link=link)


def test_generic():
    """All of the alarm, the version of the form, the fleet and whether it is over."""
    expected = {
        "schema": 1,
        "fleet": "prod",
        "over": False,
        "kind": "ACTION",
        "subject": "slurm",
        "text": "slurm does not drain gpu-0042: no answer",
        "since": "2023-11-14T22:13:20.000Z",
        "ended_at": None,
        "dry_run": False,
    }
    assert alarm_document("prod", ALARM) == expected
    over = {"over": True, "text": "slurm drains again", "ended_at": "2023-11-14T23:13:20.000Z"}
    assert alarm_document("prod", ALARM_OVER) == expected | over


def test_slack():
    """The text, and below it what it is about; nothing in it is a command to Slack."""
    message: Any = slack_alarm(notice(link=LINK))
    assert message["text"] == ALARM.text
    assert message["blocks"][1]["elements"][0]["text"] == f"fleet prod · ACTION · slurm · <{LINK}|alarms>"
    over: Any = slack_alarm(notice(ALARM_OVER, subject="<!channel>"))
    assert over["blocks"][1]["elements"][0]["text"] == "fleet prod · ACTION · &lt;!channel&gt; · over"


def test_pagerduty():
    """One incident for an alarm, which its end resolves, and which is not that of a node."""
    event = pagerduty_alarm(notice(link=LINK), "key")
    assert event == {
        "routing_key": "key",
        "event_action": "trigger",
        "dedup_key": "muster/prod/alarm/ACTION/slurm",
        "client": "muster",
        "client_url": LINK,
        "payload": {
            "summary": ALARM.text,
            "source": "slurm",
            "severity": "error",
            "timestamp": "2023-11-14T22:13:20.000Z",
            "group": "prod",
            "class": "ACTION",
            "custom_details": alarm_document("prod", ALARM),
        },
    }
    resolved = pagerduty_alarm(notice(ALARM_OVER), "key")
    assert resolved == {"routing_key": "key", "event_action": "resolve", "dedup_key": event["dedup_key"]}


@pytest.mark.parametrize("kind", list(AlarmKind))
def test_every_kind_has_a_severity(kind):
    """One that PagerDuty knows."""
    payload: Any = pagerduty_alarm(notice(kind=kind), "key")["payload"]
    assert payload["severity"] in ("critical", "error", "warning", "info")


def test_alertmanager():
    """The labels are the same at the end, and the text is none of them."""
    (stands,) = alertmanager_alarm(notice(link=LINK))
    labels = {"alertname": "MusterQuarantineAlarm", "fleet": "prod", "kind": "ACTION", "subject": "slurm"}
    assert stands == {
        "labels": labels,
        "annotations": {"summary": ALARM.text},
        "startsAt": "2023-11-14T22:13:20.000Z",
        "endsAt": "2024-11-13T22:13:20.000Z",
        "generatorURL": LINK,
    }
    (ends,) = alertmanager_alarm(notice(ALARM_OVER))
    assert (ends["labels"], ends["endsAt"]) == (labels, "2023-11-14T23:13:20.000Z")


def test_keys_tell_alarms_apart():
    """Also begin and end, and whatever a subject holds fits into a header."""
    keys = [
        notice().key,
        notice(ALARM_OVER).key,
        notice(subject="k8s").key,
        notice(since=ALARM.since + 1).key,
        notice(kind=AlarmKind.PERSON).key,
        notice(subject="a\r\nHost: b é").key,
    ]
    assert len(set(keys)) == len(keys)
    assert all(key.isascii() and key.isprintable() for key in keys)
    assert notice().key == notice().key


async def test_targets_are_told_of_alarms(plugin, server, tmp_path):
    """Each in its format, unless they do not want to; a receiver of the generic format has to ask for them."""
    told = plugin(
        ops=generic(tmp_path, f"{server.url}/ops"),
        asks=generic(tmp_path, f"{server.url}/asks", alarms=True),
        chat={"url": f"{server.url}/chat", "format": "slack"},
        quiet={"url": f"{server.url}/quiet", "format": "slack", "alarms": False},
        pager={"url": f"{server.url}/pager", "format": "pagerduty", "routing_key_file": str(tmp_path / "key")},
        alerts={"url": f"{server.url}/alerts", "format": "alertmanager"},
        muster_url="https://muster.example/",
    )
    for alarm in (ALARM, ALARM_OVER):
        outcome = await told.tell_alarm(alarm)
        assert (outcome.effect, outcome.only_tells) == (Effect.DONE, True)
    assert sorted(server.posts) == ["/alerts", "/asks", "/chat", "/pager"]
    assert [body["over"] for body in server.bodies("/asks")] == [False, True]
    assert [body["event_action"] for body in server.bodies("/pager")] == ["trigger", "resolve"]
    assert server.bodies("/pager")[0]["client_url"] == LINK
    (first, _), _ = server.posts["/asks"]
    assert first["webhook-signature"].startswith("v1,")


async def test_only_targets_that_were_not_told_are_told_again(plugin, server):
    """The plugin fails until all have been."""
    told = plugin(**{name: {"url": f"{server.url}/{name}", "format": "slack"} for name in ("chat", "other")})
    server.answers["/other"] = [web.Response(status=503)]
    assert [(await told.tell_alarm()).effect for _ in range(2)] == [Effect.FAILED, Effect.DONE]
    assert {path: len(posts) for path, posts in server.posts.items()} == {"/chat": 1, "/other": 2}


async def test_an_alarm_of_a_dry_run_leaves_nothing(plugin, server):
    """It says who would be told what; and without targets there is nobody to tell."""
    told = plugin(chat={"url": f"{server.url}/chat", "format": "slack"})
    outcome = await told.tell_alarm(ALARM.model_copy(update={"dry_run": True}))
    assert (outcome.effect, outcome.detail) == (Effect.WOULD, f"would notify chat (slack): {ALARM.text}")
    assert await plugin().tell_alarm() is None
    assert server.posts == {}
