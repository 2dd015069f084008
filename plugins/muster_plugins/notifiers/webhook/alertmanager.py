"""The alert for Alertmanager's API v2."""

from muster.model import Json, format_instant
from muster_plugins.notifiers.webhook.notice import AlarmNotice, Notice, cut

ALERT_NAME = "MusterNodeUnfit"
ALARM_ALERT_NAME = "MusterQuarantineAlarm"

_STANDS_S = 365 * 86_400.0
"""Time after which an alert ends by itself. Alertmanager's default is five minutes, and muster posts only once."""

_MOST_LABEL = 1024
"""Characters."""


def alertmanager_alerts(notice: Notice) -> list[Json]:
    """The alert of the node, or its end. Alerts are identified by their labels, so these never change."""
    transition = notice.transition
    alert: Json = {
        "labels": {"alertname": ALERT_NAME, "fleet": notice.fleet, "node": transition.node},
        "annotations": {
            "summary": notice.headline,
            "state": transition.after,
            "codes": ", ".join(transition.codes),
            "action": transition.action,
        },
    }
    if notice.link is not None:
        alert["generatorURL"] = notice.link
    if notice.is_over:
        return [alert | {"endsAt": format_instant(transition.at)}]  # the alert then keeps its own start
    times: Json = {"startsAt": format_instant(transition.at), "endsAt": format_instant(transition.at + _STANDS_S)}
    return [alert | times]


def alertmanager_alarm(notice: AlarmNotice) -> list[Json]:
    """The alert of an alarm, or its end. Kind and subject are labels, so each alarm has its own alert."""
    alarm = notice.alarm
    alert: Json = {
        "labels": {
            "alertname": ALARM_ALERT_NAME,
            "fleet": notice.fleet,
            "kind": alarm.kind,
            "subject": cut(alarm.subject, _MOST_LABEL),
        },
        "annotations": {"summary": notice.headline},
        "startsAt": format_instant(alarm.since),
        "endsAt": format_instant(alarm.since + _STANDS_S if alarm.ended_at is None else alarm.ended_at),
    }
    return [alert if notice.link is None else alert | {"generatorURL": notice.link}]
