"""Alarms that not every plugin has taken yet, so that they can be sent again after a restart.

If an alarm is over before a plugin took its begin, the plugin gets only the end.
"""

from collections.abc import Iterable

from muster.alarm import Alarm
from muster_coordinator.model.quarantine import AlarmDelivery, FleetState
from muster_coordinator.model.quarantine_events import AlarmDelivered, AlarmTaken, ResendAlarm


def after_news(fleet: FleetState, news: Iterable[Alarm]) -> FleetState:
    """The fleet's state when these alarms begin or are over."""
    latest = {alarm.key: AlarmDelivery(alarm=alarm) for alarm in news}
    if not latest:
        return fleet
    others = (delivery for delivery in fleet.undelivered if delivery.alarm.key not in latest)
    return fleet.model_copy(update={"undelivered": (*others, *latest.values())})


def after_taken(fleet: FleetState, event: AlarmTaken) -> FleetState:
    """The fleet's state after a plugin took an alarm."""
    undelivered = tuple(
        delivery.model_copy(update={"taken_by": (*delivery.taken_by, event.plugin)})
        if delivery.alarm == event.alarm
        else delivery
        for delivery in fleet.undelivered
    )
    return fleet.model_copy(update={"undelivered": undelivered})


def after_delivered(fleet: FleetState, event: AlarmDelivered) -> FleetState:
    """The fleet's state after all plugins took an alarm."""
    undelivered = tuple(delivery for delivery in fleet.undelivered if delivery.alarm != event.alarm)
    return fleet.model_copy(update={"undelivered": undelivered})


def resent(fleet: FleetState) -> list[ResendAlarm]:
    """The commands that send all undelivered alarms again."""
    return [ResendAlarm(alarm=delivery.alarm, taken_by=delivery.taken_by) for delivery in fleet.undelivered]
