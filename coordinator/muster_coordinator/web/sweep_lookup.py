"""Finds the sweep that a path names."""

from http import HTTPStatus

from muster.errors import ambiguous
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.store.store import Store
from muster_coordinator.web.problems import Problem

MOST_CANDIDATES = 10
"""Maximum number of sweeps that an error names if several ids begin with the given characters."""


async def find_sweep(store: Store, id: str) -> SweepRecord:
    """The sweep with this id, or the only one whose id begins with it. Raises a Problem otherwise."""
    record = await store.sweep(id)
    if record is not None:
        return record
    found = await store.sweep_ids(id, MOST_CANDIDATES + 1)
    if len(found) > 1:
        raise Problem(HTTPStatus.CONFLICT, ambiguous("sweep", id, found, MOST_CANDIDATES))
    record = await store.sweep(found[0]) if found else None
    if record is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"no sweep {id!r}; run `muster sweep list`")
    return record
