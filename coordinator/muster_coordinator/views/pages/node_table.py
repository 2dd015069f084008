"""The page `/nodes`: a table of nodes, the worst first, in pages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.transition import Cause
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.views.pages.page_row import WORST_FIRST, PageRow, RowCondition, as_stale

PAGE_SIZE = 100
_MOST_FINDINGS = 3


@dataclass(frozen=True, slots=True)
class TableLine:
    """A node, its findings in short, and how many more findings it has."""

    row: PageRow
    findings: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTable:
    """One page of the table: `found` of the fleet's `nodes` fit the selection. Nothing is found if it is `refused`.

    `page` counts from 1 to `pages`. `first` is the number of the first line.
    """

    at: float
    select: str | None
    nodes: int
    found: int
    counts: tuple[tuple[RowCondition, int], ...]
    page: int
    pages: int
    first: int
    is_current: bool
    lines: tuple[TableLine, ...]
    refused: str = ""

    @property
    def why_empty(self) -> str:
        """Why the table has no lines; empty if it has some, or if the selection is refused."""
        if self.lines or self.refused:
            return ""
        if not self.nodes:
            return "No node has reported yet. Start `muster agent` on each node."
        return "No node fits this selection now."


def node_table(
    rows: Sequence[PageRow],
    *,
    at: float,
    nodes: int,
    select: str | None,
    page: int,
    is_current: bool = True,
    refused: str = "",
) -> NodeTable:
    """The page of the table of these rows. After the last page it is the last one.

    While the coordinator hears no node, it is not current.
    """
    rows = rows if is_current else [*map(as_stale, rows)]
    pages = max(1, -(-len(rows) // PAGE_SIZE))
    page = min(page, pages)
    first = (page - 1) * PAGE_SIZE
    counts = Counter(row.condition for row in rows if not row.left)
    in_order = sorted(rows, key=lambda row: row.urgency)
    return NodeTable(
        at=at,
        select=select,
        nodes=nodes,
        found=len(rows),
        counts=tuple((condition, counts[condition]) for condition in WORST_FIRST if counts[condition]),
        page=page,
        pages=pages,
        first=first + 1,
        is_current=is_current,
        lines=tuple(map(_line, in_order[first : first + PAGE_SIZE])),
        refused=refused,
    )


def _line(row: PageRow) -> TableLine:
    labels = finding_labels(row.findings)
    return TableLine(row, labels[:_MOST_FINDINGS], max(0, len(labels) - _MOST_FINDINGS))


def finding_labels(findings: Sequence[NodeFinding]) -> tuple[str, ...]:
    """Each finding once with all its GPUs, in the given order: `XID 79 GPU3`, `gemm.slow GPU0,1`."""
    gpus: dict[str, dict[int, None]] = {}
    for finding in findings:
        of_label = gpus.setdefault(Cause.of(finding, finding.check).label, {})
        if finding.device is not None:
            of_label[finding.device] = None
    return tuple(f"{label} GPU{','.join(map(str, indexes))}" if indexes else label for label, indexes in gpus.items())


def table_query(select: str | None, page: int) -> Mapping[str, str]:
    """The query parameters of a page of the table, without those that have their usual value."""
    query = {} if select is None else {"select": select}
    return query if page == 1 else {**query, "page": str(page)}
