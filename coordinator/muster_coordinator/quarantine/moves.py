"""The service states, and what leads from one to another."""

from enum import StrEnum

from muster.model import ServiceState
from muster_coordinator.model.state_table import parse_state_table


class Trigger(StrEnum):
    """Why a node changes its service state.

    ACCEPTED: a new node is fit. ACCUSED: proven evidence asks for it to go, and there is room. NO_ROOM: the same,
    without room. ABSOLVED: nothing asks for it any more. RETURNING: it may be tested. PROVED: it has passed.
    RELAPSED: it has not. BROUGHT_BACK: a person let it have work again.
    """

    ACCEPTED = "ACCEPTED"
    ACCUSED = "ACCUSED"
    NO_ROOM = "NO_ROOM"
    ABSOLVED = "ABSOLVED"
    RETURNING = "RETURNING"
    PROVED = "PROVED"
    RELAPSED = "RELAPSED"
    BROUGHT_BACK = "BROUGHT_BACK"


_TABLE = """
            ACCEPTED    ACCUSED   NO_ROOM  ABSOLVED    RETURNING  PROVED      RELAPSED  BROUGHT_BACK
ACCEPTING   IN_SERVICE  CORDONED  .        .           .          .           .         IN_SERVICE
IN_SERVICE  .           CORDONED  HELD     .           .          .           .         .
HELD        .           CORDONED  .        IN_SERVICE  .          .           .         IN_SERVICE
CORDONED    .           .         .        .           PROBATION  .           .         IN_SERVICE
PROBATION   .           .         .        .           .          IN_SERVICE  CORDONED  IN_SERVICE
"""


MOVES = parse_state_table(_TABLE, ServiceState, Trigger)
"""Where each trigger leads; in a state that it says nothing about, it changes nothing."""
