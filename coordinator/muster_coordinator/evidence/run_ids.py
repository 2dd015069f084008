"""The id under which a run is stored. It prevents that a node reports a run in the place of another node.

An agent gives the runs that it begins itself ids that nobody can guess. A run that the coordinator orders has the id of
the order, which a node can guess: n1 could report run 1790000000-7 before n2, from which it was ordered. Therefore a
run with such an id keeps it only if it was ordered from the node that reports it. Otherwise it is stored under a hash
of the node's name and the id.
"""

import re
from collections import OrderedDict
from hashlib import blake2b

from muster.model import Run

REMEMBERED = 10_000
"""Orders that are remembered. A person or a test waits for an ordered run for minutes only."""

_OURS = re.compile(r"[a-z]?\d{9,}-\d+")
"""The ids that the coordinator makes: its epoch, which is at least the time of its start in seconds, and a number."""


class RunIds:
    """By id of an ordered run, the node that it was ordered from."""

    def __init__(self) -> None:
        self._ordered: OrderedDict[str, str] = OrderedDict()

    def note_ordered(self, run: str, node: str) -> None:
        """Notes an order, and forgets the oldest of more than REMEMBERED."""
        self._ordered[run] = node
        if len(self._ordered) > REMEMBERED:
            self._ordered.popitem(last=False)

    def named(self, run: Run, *, is_awaited: bool) -> Run:
        """The run with the id under which it is stored: the same one each time that the run is reported.

        `is_awaited` says that the coordinator waits for this run of this node, perhaps since before a restart.
        """
        ordered_from = self._ordered.get(run.id)
        may_have_it = ordered_from == run.node if ordered_from else is_awaited or not _OURS.fullmatch(run.id)
        if may_have_it:
            return run
        return run.model_copy(update={"id": blake2b(f"{run.node} {run.id}".encode(), digest_size=16).hexdigest()})
