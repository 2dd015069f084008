"""The service states, and what leads from one to another."""

from enum import StrEnum

from muster.model import ServiceState


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


def _parse(table: str) -> dict[tuple[ServiceState, Trigger], ServiceState]:
    head, *rows = (line.split() for line in table.strip().splitlines())
    return {
        (ServiceState(before), Trigger(trigger)): ServiceState(after)
        for before, *cells in rows
        for trigger, after in zip(head, cells, strict=True)
        if after != "."
    }


MOVES = _parse(_TABLE)
"""Where each trigger leads; in a state that it says nothing about, it changes nothing."""
