"""Whether a machine leaves or restarts soon, and why, from the notices of its metadata server. Pure.

A planned event counts from SOON_S before it begins. Notices of maintenance come days ahead; until then, the machine
works, and a fault that it has is a fault. A cloud that only freezes a machine for seconds, or moves it while it runs,
takes nothing away. What is not in the form that the cloud documents says nothing.

Sources:
- https://cloud.google.com/compute/docs/instances/monitor-plan-host-maintenance-event and .../preemptible
- https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html and
  https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_scheduled_events.html
- https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic_core import from_json

from muster_plugins.machines.cloud.answers import Answers

SOON_S = 600.0
"""How long before its beginning a planned event counts."""

_AWS_ACTIONS = {"terminate": "ends", "stop": "stops", "hibernate": "hibernates"}

_AWS_CODES = {
    "instance-reboot": "reboots it",
    "system-reboot": "reboots its host",
    "system-maintenance": "maintains its host",
    "instance-retirement": "retires it",
    "instance-stop": "stops it",
}

_AZURE_TYPES = {
    "Reboot": "reboots it",
    "Redeploy": "moves it to another host",
    "Preempt": "takes its spot machine back",
    "Terminate": "deletes it",
}
"""The types of events that interrupt a machine; `Freeze` is a pause of seconds."""


def google_departure(answers: Answers, now: float) -> str | None:
    """From `preempted`, `maintenance-event` and `upcoming-maintenance`; `now` is in seconds since the epoch."""
    preempted, event, upcoming = answers
    if preempted == "TRUE":
        return "Google Cloud preempts it"
    if event == "TERMINATE_ON_HOST_MAINTENANCE":
        return "Google Cloud maintains its host"
    # The documentation shows these keys as `window_start_time`, and the server may write `windowStartTime`.
    planned = {key.replace("_", "").lower(): value for key, value in _object(upcoming).items()}
    is_ongoing = planned.get("maintenancestatus") == "ONGOING"
    is_pending = planned.get("maintenancestatus") == "PENDING"
    if is_ongoing or (is_pending and _is_soon(planned.get("windowstarttime"), now)):
        return "Google Cloud maintains its host"
    return None


def aws_departure(answers: Answers, now: float) -> str | None:
    """From `spot/instance-action` and `events/maintenance/scheduled`."""
    interruption, scheduled = answers
    effect = _AWS_ACTIONS.get(_text(_object(interruption), "action"))
    if effect is not None:
        return f"AWS {effect} its spot machine"
    for event in _objects(_parsed(scheduled)):
        effect = _AWS_CODES.get(_text(event, "Code"))
        if effect is not None and event.get("State") == "active" and _is_soon(event.get("NotBefore"), now):
            return f"AWS {effect}"
    return None


def azure_departure(answers: Answers, now: float) -> str | None:
    """From the machine's own name and `scheduledevents`, which also has the events of its neighbours."""
    name, scheduled = answers
    for event in _objects(_object(scheduled).get("Events")):
        effect, resources = _AZURE_TYPES.get(_text(event, "EventType")), event.get("Resources")
        is_own = isinstance(resources, list) and name is not None and name in resources
        has_begun = event.get("EventStatus") == "Started"
        if is_own and effect is not None and (has_begun or _is_soon(event.get("NotBefore"), now)):
            return f"Azure {effect}"
    return None


def _is_soon(text: Any, now: float) -> bool:
    """Whether this instant has come or will soon."""
    begins = _instant(text) if isinstance(text, str) else None
    return begins is not None and begins - SOON_S <= now


def _instant(text: str) -> float | None:
    """Seconds since the epoch, from ISO 8601, RFC 2822 (Azure) or `21 Jan 2019 09:00:43 GMT` (AWS)."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
        except ValueError:
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _parsed(text: str | None) -> Any:
    try:
        return from_json(text or "null")
    except ValueError:
        return None


def _text(found: Mapping[str, Any], key: str) -> str:
    """The text at this key; empty if it is none."""
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _object(text: str | None) -> Mapping[str, Any]:
    found = _parsed(text)
    return found if isinstance(found, dict) else {}


def _objects(found: Any) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in (found if isinstance(found, list) else []) if isinstance(each, dict))
