"""A transition as JSON for other programs: the body of a generic webhook, the input of an actor's script."""

from muster import Transition
from muster.model import Json

SCHEMA = 1


def transition_document(fleet: str, transition: Transition) -> Json:
    """The transition with the version of this form, the fleet, and whether the node is out of service now."""
    return {
        "schema": SCHEMA,
        "fleet": fleet,
        "out_of_service": transition.is_out,
        **transition.model_dump(mode="json"),
    }
