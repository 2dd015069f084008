"""The event that PagerDuty's Events API v2 takes."""

from hashlib import sha256

from muster.model import Json, ServiceState, format_instant
from muster_plugins.notifiers.webhook.notice import Notice, cut
from muster_plugins.shared.transition_document import transition_document

_MOST_SUMMARY = 1024
_MOST_DEDUP_KEY = 255
"""Characters that the Events API takes."""

_SEVERITY = {
    ServiceState.HELD: "critical",  # it still gets work
    ServiceState.CORDONED: "error",
    ServiceState.PROBATION: "info",
    ServiceState.ACCEPTING: "info",
}


def pagerduty_event(notice: Notice, routing_key: str) -> Json:
    """Opens or updates the incident of the node, or resolves it when the node is in service again."""
    event: Json = {"routing_key": routing_key, "dedup_key": _dedup_key(notice)}
    if notice.is_over:
        return event | {"event_action": "resolve"}
    link: Json = {} if notice.link is None else {"client_url": notice.link}
    return event | {"event_action": "trigger", "client": "muster", "payload": _payload(notice), **link}


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


def _dedup_key(notice: Notice) -> str:
    """The same for all that is told about a node, so that its return resolves the incident that its failure opened."""
    key = f"muster/{notice.fleet}/{notice.transition.node}"
    return key if len(key) <= _MOST_DEDUP_KEY else f"muster/{sha256(key.encode()).hexdigest()}"
