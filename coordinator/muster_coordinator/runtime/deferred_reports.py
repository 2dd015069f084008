"""Which reports are of no use, because one before them was deferred.

The idea: the runs of a node are taken in the order of their numbers. If a report is deferred, those after it have a
gap, and the coordinator would decode them only to refuse them. So they are deferred, too, until the node sends again
from where the gap begins.

Example: of n1, the report of the runs 1 to 5 is taken and 6 to 9 is deferred. The report of 10 and 11 begins after 9,
so it is of no use. Then n1 sends 6 to 11 again, which begins after 5: it is taken, and the gap is closed.

Each step takes constant time. The memory is two numbers and a name for each node.
"""

from typing import NamedTuple

from muster.wire.report_head import ReportHead

MOST_NODES = 50_000
"""Without a broker ACL, a client can make up names; then the oldest go. A useless report of theirs is decoded."""


class _Through(NamedTuple):
    """The number of the last run that was taken in a stream, and whether a report after it was deferred."""

    stream: str
    seq: int
    has_gap: bool


class DeferredReports:
    """How far the reports of each node were taken, and the gaps after that. Reports without a head do not count."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Through] = {}
        self._waiting: dict[str, str] = {}  # by node, the stream of what was deferred; the first comes first

    def is_useless(self, node: str, head: ReportHead | None) -> bool:
        """Whether runs before this report were deferred, so that it cannot be taken."""
        known = self._of(node, head)
        return head is not None and known is not None and known.has_gap and head.after > known.seq

    def defer(self, node: str, head: ReportHead | None) -> None:
        """Notes that a report was deferred."""
        if head is not None:
            known = self._of(node, head)
            self._note(node, _Through(head.stream, head.after if known is None else known.seq, has_gap=True))
            self._waiting.setdefault(node, head.stream)

    def take(self, node: str, head: ReportHead | None) -> None:
        """Notes that a report was taken."""
        if head is None:
            return
        known = self._of(node, head)
        if known is None or not known.has_gap:
            self._note(node, _Through(head.stream, head.through, has_gap=False))
        elif head.after <= known.seq:
            self._note(node, _Through(head.stream, max(head.through, known.seq), has_gap=False))
            self._waiting.pop(node, None)

    def pop(self) -> tuple[str, str] | None:
        """The node that waits longest since its report was deferred, and the stream. It no longer waits after that."""
        node = next(iter(self._waiting), None)
        return None if node is None else (node, self._waiting.pop(node))

    def _of(self, node: str, head: ReportHead | None) -> _Through | None:
        """What is known of the stream of this report."""
        known = self._nodes.get(node)
        return None if known is None or head is None or known.stream != head.stream else known

    def _note(self, node: str, through: _Through) -> None:
        self._nodes[node] = through
        if len(self._nodes) > MOST_NODES:
            oldest = next(iter(self._nodes))
            del self._nodes[oldest]
            self._waiting.pop(oldest, None)
