"""The id under which a run is stored. It prevents a node from reporting a run in place of another node.

An agent gives its own background runs ids that nobody can guess. A run that the coordinator requests has the id of the
request, which a node can guess: n1 could report run 1790000000-7 before n2, from which it was requested. Therefore a
run with such an id keeps it only if it was requested from the node that reports it. Otherwise it is stored under a hash
of the node's name and the id. So is a run with the id of a scheduled run that does not follow from its own stream and
number.
"""

import re
from collections import OrderedDict
from hashlib import blake2b

from muster.model import Run
from muster.wire.scheduled_runs import IS_SCHEDULED, scheduled_id, stream_key

REMEMBERED = 10_000
"""Maximum number of requests that are remembered. A person or a test waits for a requested run for minutes only."""

_OURS = re.compile(r"[a-z]?\d{9,}-\d+")
"""The form of the coordinator's ids: its epoch, which is at least the time of its start in seconds, and a number."""


class RunIds:
    """The node from which each requested run was requested, by the run's id."""

    def __init__(self) -> None:
        self._ordered: OrderedDict[str, str] = OrderedDict()

    def note_ordered(self, run: str, node: str) -> None:
        """Notes a request, and forgets the oldest of more than REMEMBERED."""
        self._ordered[run] = node
        if len(self._ordered) > REMEMBERED:
            self._ordered.popitem(last=False)

    def named(self, run: Run, stream: str, *, is_awaited: bool) -> Run:
        """The run with the id under which it is stored, which is the same each time that the run is reported.

        `is_awaited` means that the coordinator waits for this run of this node, perhaps since before a restart.
        """
        ordered_from = self._ordered.get(run.id)
        may_have_it = ordered_from == run.node if ordered_from else is_awaited or _is_free(run, stream)
        if may_have_it:
            return run
        return run.model_copy(update={"id": blake2b(f"{run.node} {run.id}".encode(), digest_size=16).hexdigest()})


def _is_free(run: Run, stream: str) -> bool:
    """Whether no other node can have this id."""
    if IS_SCHEDULED.fullmatch(run.id):
        return run.id == scheduled_id(stream_key(run.node, stream), run.seq)
    return not _OURS.fullmatch(run.id)
