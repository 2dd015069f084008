"""An alarm as JSON for other programs."""

from muster import Alarm
from muster.model import Json

SCHEMA = 1


def alarm_document(fleet: str, alarm: Alarm) -> Json:
    """The alarm with the version of this form, the fleet, and whether it is over."""
    return {"schema": SCHEMA, "fleet": fleet, "over": alarm.is_over, **alarm.model_dump(mode="json")}
