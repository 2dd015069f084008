"""The last runs of each check of each node: the evidence about a node can be rebuilt from them."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Select, func, select

from muster.model import Verdict
from muster_coordinator.store.tables import RUNS

RUNS_TO_RESTORE = 8
"""Runs per node and check from which evidence is rebuilt: decisive ones, and others."""

CHARACTERS_TO_RESTORE = 16 << 20
"""Maximum size of the runs of one node that are read: five times what sixty checks have with runs of 2 KiB
each. Without it, a node that made up checks and filled its quota with them could keep the coordinator from starting.
"""

DECISIVE = (Verdict.PASS, Verdict.FAIL)
"""The verdicts that confirm or clear a failure; any number of others after them changes nothing about it."""


def last_runs(*wanted: ColumnElement[bool]) -> Select[tuple[str]]:
    """The ids of each node's last runs of each check that are not SKIPPED, among the wanted ones.

    Runs in groups are counted separately, so that a long sweep does not push out the node's own runs.
    """
    newest_first = (RUNS.c.started_at.desc(), RUNS.c.seq.desc())
    kind = (RUNS.c.group.is_(None), RUNS.c.verdict.in_(DECISIVE))
    place = func.row_number().over(partition_by=(RUNS.c.node, RUNS.c.check, *kind), order_by=newest_first)
    ranked = select(RUNS.c.id, place.label("place")).where(RUNS.c.verdict != Verdict.SKIPPED.value, *wanted).subquery()
    return select(ranked.c.id).where(ranked.c.place <= RUNS_TO_RESTORE)


def runs_to_restore(nodes: Sequence[str]) -> Select[tuple[str]]:
    """The ids of the last runs of these nodes, without the oldest if those of one node are too large."""
    newest_first = (RUNS.c.started_at.desc(), RUNS.c.seq.desc())
    so_far = func.sum(func.length(RUNS.c.body)).over(partition_by=RUNS.c.node, order_by=newest_first, rows=(None, 0))
    sizes = select(RUNS.c.id, so_far.label("so_far")).where(RUNS.c.id.in_(last_runs(RUNS.c.node.in_(nodes)))).subquery()
    return select(sizes.c.id).where(sizes.c.so_far <= CHARACTERS_TO_RESTORE)
