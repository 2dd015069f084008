"""What a transition looks like in each format."""

from typing import Any

import pytest
from tests.cases import cases

from muster.model import Action, ServiceState
from muster.transition import Cause, Transition
from muster_plugins.notifiers.webhook.alertmanager import alertmanager_alerts
from muster_plugins.notifiers.webhook.notice import Notice, cut
from muster_plugins.notifiers.webhook.pagerduty import pagerduty_event
from muster_plugins.notifiers.webhook.slack import slack_message
from muster_plugins.shared.transition_document import transition_document

OUT = Transition(
    id="t1",
    node="gpu-0042",
    before=ServiceState.IN_SERVICE,
    after=ServiceState.CORDONED,
    reason="fell off the bus",
    at=1_700_000_000.0,
    codes=("nvml.lost", "kernel_log.xid_79"),
    action=Action.REPLACE,
    by="alice",
)
BACK = Transition(
    id="t2",
    node="gpu-0042",
    before=ServiceState.PROBATION,
    after=ServiceState.IN_SERVICE,
    reason="passed twice",
    at=1_700_003_600.0,
)
LINK = "https://muster.example/nodes/gpu-0042"


def notice(transition: Transition, link: str | None = None, **changed) -> Notice:
    return Notice(fleet="prod", transition=transition.model_copy(update=changed), link=link)


def event_of(transition: Transition, **changed) -> Any:
    return pagerduty_event(notice(transition, **changed), "key")


def test_generic():
    """All of the transition, the version of the form, the fleet and whether the node is out."""
    assert transition_document("prod", OUT) == {
        "schema": 1,
        "fleet": "prod",
        "out_of_service": True,
        "id": "t1",
        "node": "gpu-0042",
        "before": "IN_SERVICE",
        "after": "CORDONED",
        "reason": "fell off the bus",
        "at": "2023-11-14T22:13:20.000Z",
        "codes": ["nvml.lost", "kernel_log.xid_79"],
        "causes": [],
        "action": "REPLACE",
        "by": "alice",
        "dry_run": False,
    }


CAUSE = Cause(code="kernel_log.xid", device=3, uuid="GPU-5c1d", xid=79, summary="XID 79, GPU has fallen off the bus")
HEADLINE = "gpu-0042 drained: XID 79 GPU3: GPU has fallen off the bus; replace the hardware; GPU-5c1d"


def test_the_cause_comes_first():
    """In the line that a person sees of each format; programs get it in its parts."""
    told = OUT.model_copy(update={"causes": (CAUSE,)})
    slack: Any = slack_message(notice(told))
    alerts: Any = alertmanager_alerts(notice(told))
    assert slack["text"] == HEADLINE
    assert event_of(told)["payload"]["summary"] == HEADLINE
    assert alerts[0]["annotations"]["summary"] == HEADLINE
    assert transition_document("prod", told)["causes"] == [CAUSE.model_dump()]


def test_slack():
    """The headline, below it the circumstances, and the headline once more for notifications."""
    headline = "gpu-0042 drained: fell off the bus"
    below = "fleet prod · IN_SERVICE → CORDONED · nvml.lost · kernel_log.xid_79 · REPLACE · by alice".replace(
        ">", "&gt;"
    )
    assert slack_message(notice(OUT, LINK)) == {
        "text": headline,
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": headline}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": f"{below} · <{LINK}|why>"}]},
        ],
    }


def test_slack_tells_of_no_move_where_there_is_none():
    """As when a node that waits will not go soon after all."""
    message: Any = slack_message(notice(OUT, before=ServiceState.HELD, after=ServiceState.HELD))
    assert message["blocks"][1]["elements"][0]["text"].startswith("fleet prod · stays HELD · nvml.lost")


def test_slack_reads_no_command_in_a_reason():
    """Nobody can have everybody called through a finding's text, and no text is longer than Slack takes."""
    message: Any = slack_message(notice(OUT, reason="<!channel> & " + "<" * 10_000, codes=("&" * 10_000,)))
    assert message["text"].startswith("gpu-0042 drained: &lt;!channel&gt; &amp; &lt;")
    texts = [message["text"], message["blocks"][1]["elements"][0]["text"]]
    assert all(1500 < len(text) <= 3000 and text.endswith("…") for text in texts)


def test_pagerduty_opens_an_incident():
    """With the fields of the Events API v2."""
    assert pagerduty_event(notice(OUT, LINK), "key") == {
        "routing_key": "key",
        "event_action": "trigger",
        "dedup_key": "muster/prod/gpu-0042",
        "client": "muster",
        "client_url": LINK,
        "payload": {
            "summary": "gpu-0042 drained: fell off the bus",
            "source": "gpu-0042",
            "severity": "error",
            "timestamp": "2023-11-14T22:13:20.000Z",
            "group": "prod",
            "class": "nvml.lost",
            "custom_details": transition_document("prod", OUT),
        },
    }


def test_pagerduty_resolves_the_incident():
    """That which the node's failure has opened."""
    opened, resolved = (event_of(transition) for transition in (OUT, BACK))
    assert resolved == {"routing_key": "key", "event_action": "resolve", "dedup_key": opened["dedup_key"]}


@pytest.mark.parametrize(
    ("state", "severity"), [("HELD", "critical"), ("CORDONED", "error"), ("PROBATION", "info"), ("ACCEPTING", "info")]
)
def test_pagerduty_severity(state, severity):
    """A bad node that still gets work is the worst."""
    event = event_of(OUT, after=ServiceState(state), codes=())
    assert event["payload"]["severity"] == severity
    assert "class" not in event["payload"]


def test_pagerduty_takes_no_more_than_so_much():
    """A summary of 1,024 characters; keys of 255, which stay different where names are longer."""
    node, other = ("n" * 252 + end for end in "ab")
    events = [event_of(OUT, node=each, reason="x" * 2000) for each in (node, other)]
    assert {len(event["payload"]["summary"]) for event in events} == {1024}
    first, second = (event["dedup_key"] for event in events)
    assert first != second
    assert len(first) <= 255
    assert first == event_of(BACK, node=node)["dedup_key"]


def test_alertmanager_alert_stands():
    """For long, since Alertmanager would take one without an end for over after five minutes."""
    assert alertmanager_alerts(notice(OUT, LINK)) == [
        {
            "labels": {"alertname": "MusterNodeUnfit", "fleet": "prod", "node": "gpu-0042"},
            "annotations": {
                "summary": "gpu-0042 drained: fell off the bus",
                "state": "CORDONED",
                "codes": "nvml.lost, kernel_log.xid_79",
                "action": "REPLACE",
            },
            "startsAt": "2023-11-14T22:13:20.000Z",
            "endsAt": "2024-11-13T22:13:20.000Z",
            "generatorURL": LINK,
        }
    ]


def test_alertmanager_alert_ends():
    """The same labels make it the same alert, and its start stays that which it had."""
    alerts: Any = [alertmanager_alerts(notice(transition)) for transition in (OUT, BACK)]
    (stands,), (ends,) = alerts
    assert ends["labels"] == stands["labels"]
    assert ends["endsAt"] == "2023-11-14T23:13:20.000Z"
    assert not {"startsAt", "generatorURL"} & ends.keys()


def test_no_two_notices_have_the_same_key():
    """Not even where two coordinators count their transitions alike, or one starts to count again."""
    notices = (notice(OUT), notice(OUT, at=OUT.at + 1), notice(BACK), Notice(fleet="lab", transition=OUT))
    assert len({each.key for each in notices}) == 4
    assert notice(OUT).key == notice(OUT).key == "prod:t1:1700000000000"


@cases("state", list(ServiceState))
def test_every_state_has_words(state):
    """The headline names the node first."""
    assert notice(OUT, after=state).headline.startswith("gpu-0042 ")


def test_what_is_cut_says_so():
    """And is not longer than it may be."""
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")
