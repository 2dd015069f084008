"""The event for PagerDuty's Events API v2."""

from hashlib import sha256

from muster import AlarmKind
from muster.model import Json, ServiceState, format_instant
from muster_plugins.notifiers.webhook.notice import AlarmNotice, Notice, cut
from muster_plugins.shared.alarm_document import alarm_document
from muster_plugins.shared.transition_document import transition_document

_MOST_SUMMARY = 1024
_MOST_DEDUP_KEY = 255
"""Maximum number of characters in the Events API."""

_SEVERITY = {
    ServiceState.HELD: "critical",  # the node still gets work
    ServiceState.CORDONED: "error",
    ServiceState.PROBATION: "info",
    ServiceState.ACCEPTING: "info",
}

_SEVERITY_OF_ALARM = {
    AlarmKind.MASS_EVENT: "critical",
    AlarmKind.BUDGET: "critical",  # faulty nodes get work
    AlarmKind.ACTION: "error",
    AlarmKind.PERSON: "warning",
}


def pagerduty_event(notice: Notice, routing_key: str) -> Json:
    """Opens or updates the incident of the node, or resolves it when the node is in service again."""
    dedup_key = _dedup_key(notice.fleet, notice.transition.node)
    return _event(notice, routing_key, dedup_key, {} if notice.is_over else _payload(notice))


def pagerduty_alarm(notice: AlarmNotice, routing_key: str) -> Json:
    """Opens the incident of an alarm, or resolves it when the alarm is over."""
    alarm = notice.alarm
    payload: Json = {
        "summary": cut(notice.headline, _MOST_SUMMARY),
        "source": alarm.subject,
        "severity": _SEVERITY_OF_ALARM[alarm.kind],
        "timestamp": format_instant(alarm.since),
        "group": notice.fleet,
        "class": alarm.kind,
        "custom_details": alarm_document(notice.fleet, alarm),
    }
    dedup_key = _dedup_key(notice.fleet, f"alarm/{alarm.kind}/{alarm.subject}")
    return _event(notice, routing_key, dedup_key, payload)


def _event(notice: Notice | AlarmNotice, routing_key: str, dedup_key: str, payload: Json) -> Json:
    event: Json = {"routing_key": routing_key, "dedup_key": dedup_key}
    if notice.is_over:
        return event | {"event_action": "resolve"}
    link: Json = {} if notice.link is None else {"client_url": notice.link}
    return event | {"event_action": "trigger", "client": "muster", "payload": payload, **link}


def _payload(notice: Notice) -> Json:
    transition = notice.transition
    payload: Json = {
        "summary": cut(notice.headline, _MOST_SUMMARY),
        "source": transition.node,
        "severity": _SEVERITY[transition.after],
        "timestamp": format_instant(transition.at),
        "group": notice.fleet,
        "custom_details": transition_document(notice.fleet, transition),
    }
    return payload | {"class": transition.codes[0]} if transition.codes else payload


def _dedup_key(fleet: str, subject: str) -> str:
    """The key of the node's incident. All notices about a node share it, so its return resolves its incident."""
    key = f"muster/{fleet}/{subject}"
    return key if len(key) <= _MOST_DEDUP_KEY else f"muster/{sha256(key.encode()).hexdigest()}"
