"""Why a cloud ends or restarts a machine, from the texts that its documentation shows."""

import json
from datetime import UTC, datetime

from tests.cases import cases

from muster_plugins.machines.cloud.notices import SOON_S, aws_departure, azure_departure, google_departure

BEGINS = datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()
SOON, EARLY = BEGINS - SOON_S, BEGINS - SOON_S - 1

UPCOMING = {
    "can_reschedule": "true",
    "latest_window_start_time": "2026-12-01T19:00:01Z",
    "maintenance_status": "PENDING",
    "type": "SCHEDULED",
    "window_end_time": "2026-11-27T16:00:00Z",
    "window_start_time": "2026-11-27T12:00:00Z",
}
CAMEL = {"maintenanceStatus": "PENDING", "windowStartTime": "2026-11-27T12:00:00Z"}
HOST = "Google Cloud maintains its host"


@cases(
    ("preempted", "event", "upcoming", "now", "why"),
    [
        ("FALSE", "NONE", None, BEGINS, None),
        ("TRUE", "NONE", None, BEGINS, "Google Cloud preempts it"),
        ("FALSE", "TERMINATE_ON_HOST_MAINTENANCE", None, BEGINS, HOST),
        ("FALSE", "MIGRATE_ON_HOST_MAINTENANCE", None, BEGINS, None),
        (None, None, json.dumps(UPCOMING), SOON, HOST),
        (None, None, json.dumps(UPCOMING), EARLY, None),
        (None, None, json.dumps(CAMEL), SOON, HOST),
        (None, None, json.dumps({**UPCOMING, "maintenance_status": "ONGOING"}), EARLY, HOST),
        (None, None, json.dumps({"maintenance_status": "PENDING", "window_start_time": 7}), BEGINS, None),
        (None, None, '{ "error": "no notifications have been received yet, try again later" }', BEGINS, None),
        ("<html>", "[1", "[[]]", BEGINS, None),
    ],
)
def test_google_cloud_names_preemption_and_maintenance(preempted, event, upcoming, now, why):
    """A machine that moves while it runs does not leave, and one with maintenance in a week is still at work."""
    assert google_departure([preempted, event, upcoming], now) == why


EVENT = {
    "NotBefore": "27 Nov 2026 12:00:00 GMT",
    "Code": "system-reboot",
    "Description": "scheduled reboot",
    "EventId": "instance-event-0d59937288b749b32",
    "NotAfter": "27 Nov 2026 16:00:00 GMT",
    "State": "active",
}


@cases(
    ("interruption", "events", "now", "why"),
    [
        (None, [], BEGINS, None),
        ({"action": "terminate", "time": "2026-11-27T12:00:00Z"}, [], EARLY, "AWS ends its spot machine"),
        ({"action": "stop", "time": "2026-11-27T12:00:00Z"}, None, EARLY, "AWS stops its spot machine"),
        (None, [EVENT], SOON, "AWS reboots its host"),
        (None, [EVENT], EARLY, None),
        (None, [{**EVENT, "State": "completed"}], BEGINS, None),
        (None, [{**EVENT, "State": "canceled"}, {**EVENT, "Code": "instance-retirement"}], SOON, "AWS retires it"),
        (None, [{**EVENT, "NotBefore": "tomorrow"}], BEGINS, None),
        ({"action": ["terminate"]}, {"Code": "system-reboot"}, BEGINS, None),
        (None, [7, None, {**EVENT, "Code": "of next year"}, {**EVENT, "Code": ["system-reboot"]}], BEGINS, None),
    ],
)
def test_aws_names_interruptions_and_scheduled_events(interruption, events, now, why):
    """An interruption counts at once, because AWS gives two minutes; events count when they are near and active."""
    texts = [None if value is None else json.dumps(value) for value in (interruption, events)]
    assert aws_departure(texts, now) == why


PREEMPT = {
    "EventId": "A123BC45-1234-5678-AB90-ABCDEF123456",
    "EventType": "Preempt",
    "ResourceType": "VirtualMachine",
    "Resources": ["gpu_0", "gpu_3"],
    "EventStatus": "Scheduled",
    "NotBefore": "Fri, 27 Nov 2026 12:00:00 GMT",
    "EventSource": "Platform",
    "DurationInSeconds": -1,
}


@cases(
    ("event", "now", "why"),
    [
        ({}, SOON, "Azure takes its spot machine back"),
        ({}, EARLY, None),
        ({"EventType": "Freeze", "DurationInSeconds": 5}, SOON, None),
        ({"EventType": "Redeploy", "EventStatus": "Started", "NotBefore": ""}, EARLY, "Azure moves it to another host"),
        ({"Resources": ["gpu_1"]}, SOON, None),
        ({"Resources": None}, SOON, None),
        ({"Resources": 7}, SOON, None),
        ({"Resources": "gpu_3"}, SOON, None),
        ({"EventType": ["Preempt"]}, SOON, None),
        ({"NotBefore": "soon"}, SOON, None),
    ],
)
def test_azure_names_the_events_of_this_machine(event, now, why):
    """The list also has those of its neighbours."""
    scheduled = json.dumps({"DocumentIncarnation": 1, "Events": [{**PREEMPT, **event}]})
    assert azure_departure(["gpu_3", scheduled], now) == why


@cases("scheduled", [None, "", "{", "[]", '{"Events": {}}', '{"Events": [null]}', '{"Events": []}'])
def test_without_events_an_azure_machine_stays(scheduled):
    """Also if the answer is of another form."""
    assert azure_departure(["gpu_3", scheduled], BEGINS) is None
