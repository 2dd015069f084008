"""The request to a target: the body in the target's format, and the headers."""

from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from muster import __version__
from muster_plugins.notifiers.webhook.alertmanager import alertmanager_alarm, alertmanager_alerts
from muster_plugins.notifiers.webhook.credentials import Credentials
from muster_plugins.notifiers.webhook.notice import AlarmNotice, Notice
from muster_plugins.notifiers.webhook.pagerduty import pagerduty_alarm, pagerduty_event
from muster_plugins.notifiers.webhook.settings import WebhookTarget
from muster_plugins.notifiers.webhook.signature import signature_headers
from muster_plugins.notifiers.webhook.slack import slack_alarm, slack_message
from muster_plugins.shared.alarm_document import alarm_document
from muster_plugins.shared.transition_document import transition_document


@dataclass(frozen=True, slots=True, repr=False)  # there may be secrets in both parts
class WebhookRequest:
    """Headers and body of a POST."""

    headers: dict[str, str]
    body: bytes


def make_request(
    key: str, target: WebhookTarget, credentials: Credentials, notice: Notice | AlarmNotice, now: float
) -> WebhookRequest:
    """The request for a notice. `key` is the same whenever the same notice goes to the same target."""
    if isinstance(notice, AlarmNotice):
        body = to_json(_alarm(target, credentials, notice))
    else:
        body = to_json(_transition(target, credentials, notice))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"muster/{__version__}",
        "Idempotency-Key": key,
    }
    if credentials.token is not None:
        headers["Authorization"] = f"Bearer {credentials.token}"
    if credentials.signing_key is not None:
        headers |= signature_headers(credentials.signing_key, key, int(now), body)
    return WebhookRequest(headers, body)


def _transition(target: WebhookTarget, credentials: Credentials, notice: Notice) -> Any:
    match target.format:
        case "generic":
            return transition_document(notice.fleet, notice.transition)
        case "slack":
            return slack_message(notice)
        case "pagerduty":
            assert credentials.routing_key is not None, "the settings see to it"
            return pagerduty_event(notice, credentials.routing_key)
        case "alertmanager":
            return alertmanager_alerts(notice)


def _alarm(target: WebhookTarget, credentials: Credentials, notice: AlarmNotice) -> Any:
    match target.format:
        case "generic":
            return alarm_document(notice.fleet, notice.alarm)
        case "slack":
            return slack_alarm(notice)
        case "pagerduty":
            assert credentials.routing_key is not None, "the settings see to it"
            return pagerduty_alarm(notice, credentials.routing_key)
        case "alertmanager":
            return alertmanager_alarm(notice)
