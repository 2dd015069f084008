"""By which id a run is stored, so that no node can take the place of another's run.

Agents name the runs that they begin themselves by ids that nobody can guess. A run that the coordinator orders has the
id of the order, which can be guessed: a node that reports it first would be taken for the one that was asked. So such a
run is stored by its id only if it was ordered from its node, and else by another id, made of both.
"""

import re
from collections import OrderedDict
from hashlib import blake2b

from muster.model import Run

REMEMBERED = 10_000
"""Orders. Whoever waits for a run does so for minutes."""

_OURS = re.compile(r"[a-z]?\d{9,}-\d+")
"""The ids that the coordinator makes: its epoch, which is not below the time it began in seconds, and a number."""


class RunIds:
    """The runs that were ordered, by id, with the node that each was ordered from."""

    def __init__(self) -> None:
        self._ordered: OrderedDict[str, str] = OrderedDict()

    def note_ordered(self, run: str, node: str) -> None:
        """Notes an order; of very many the oldest are forgotten."""
        self._ordered[run] = node
        if len(self._ordered) > REMEMBERED:
            self._ordered.popitem(last=False)

    def named(self, run: Run, *, is_awaited: bool) -> Run:
        """The run by the id that it is stored by; `is_awaited` says that its node owes it to us from before a restart.

        The same run always gets the same one, so that it is stored once however often it is reported.
        """
        ordered_from = self._ordered.get(run.id)
        may_have_it = ordered_from == run.node if ordered_from else is_awaited or not _OURS.fullmatch(run.id)
        if may_have_it:
            return run
        return run.model_copy(update={"id": blake2b(f"{run.node} {run.id}".encode(), digest_size=16).hexdigest()})
