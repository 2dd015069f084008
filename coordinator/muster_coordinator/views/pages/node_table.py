"""The page `/nodes`: a table of nodes or of groups of nodes, the worst first, in pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from muster.errors import Refused
from muster.transition import Cause
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.node_order import NAME, URGENCY, sort_key
from muster_coordinator.views.pages.group_lines import GroupLine
from muster_coordinator.views.pages.page_row import PageRow, RowCondition, as_stale

PAGE_SIZE = 100
_MOST_FINDINGS = 3

BACKWARDS = "-"
"""Before a sort key: the same order backwards."""

COLUMNS = (
    ("Node", NAME),
    ("State", URGENCY),
    ("Service", "service"),
    ("Block", "block"),
    ("Rack", "rack"),
    ("Leaf", "leaf"),
    ("Findings", None),
    ("Changed", None),
)
"""The columns of nodes, and the sort key of each."""

PartT = TypeVar("PartT")
LineT = TypeVar("LineT")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAddress:
    """What the URL of the page asks for. `select` is a selection, `group` the key to group by; None without."""

    select: str | None = None
    sort: str = URGENCY
    group: str | None = None
    page: int = 1

    @property
    def parameters(self) -> Mapping[str, str]:
        """The query parameters of the URL, without those that have their usual value."""
        given = {
            "select": self.select,
            "sort": None if self.sort == URGENCY else self.sort,
            "group": self.group,
            "page": None if self.page == 1 else str(self.page),
        }
        return {name: value for name, value in given.items() if value is not None}

    def direction(self, key: str) -> str:
        """How the table is sorted by this key, in the words of `aria-sort`; empty if it is not."""
        if self.sort.removeprefix(BACKWARDS) != key:
            return ""
        return "descending" if self.sort.startswith(BACKWARDS) else "ascending"

    def sort_after(self, key: str) -> str:
        """The sort key after a click on this one: a second click turns the order around."""
        return f"{BACKWARDS}{key}" if self.direction(key) == "ascending" else key


@dataclass(frozen=True, slots=True)
class TablePart(Generic[PartT]):
    """The items on one page of all `total`: `page` counts from 1 to `pages`, `first` is the number of the first."""

    items: Sequence[PartT]
    page: int
    pages: int
    first: int
    total: int

    def showing(self, items: Sequence[LineT]) -> "TablePart[LineT]":
        """The same part, with what was made of its items."""
        return TablePart(items, self.page, self.pages, self.first, self.total)


@dataclass(frozen=True, slots=True)
class TableLine:
    """A node, its findings in short, how many more findings it has, and when the last of all this began."""

    row: PageRow
    findings: tuple[str, ...]
    more: int
    changed_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTable:
    """What the page shows: `found` of the fleet's `nodes` fit the selection. Nothing is found if it is `refused`.

    `part` has lines of nodes, or of groups if the address has a key to group by. `counts` are the nodes that were found
    by condition, without those that have left; `group_keys` are keys that they can be grouped by.
    """

    at: float
    address: TableAddress
    nodes: int
    found: int
    counts: Mapping[RowCondition, int]
    part: TablePart[TableLine] | TablePart[GroupLine]
    group_keys: tuple[str, ...] = ()
    refused: str = ""

    @property
    def why_empty(self) -> str:
        """Why the table has no lines; empty if it has some, or if the request is refused."""
        if self.part.items or self.refused:
            return ""
        if not self.nodes:
            return "No node has reported yet. Start `muster agent` on each node."
        return "No node fits this selection now."


def in_order(nodes: Iterable[Candidate], sort: str) -> list[Candidate]:
    """The nodes in the order of a sort key of the API, backwards after a `-`. Raises Refused for an unknown key."""
    try:
        key = sort_key(sort.removeprefix(BACKWARDS))
    except Refused as error:
        raise Refused(f"sort: {error}") from None
    return sorted(nodes, key=key, reverse=sort.startswith(BACKWARDS))


def table_part(items: Sequence[PartT], page: int) -> TablePart[PartT]:
    """The items of this page. After the last page it is the last one."""
    pages = max(1, -(-len(items) // PAGE_SIZE))
    page = min(page, pages)
    first = (page - 1) * PAGE_SIZE
    return TablePart(items[first : first + PAGE_SIZE], page, pages, first + 1, len(items))


def table_line(row: PageRow, *, is_current: bool) -> TableLine:
    """The line of a node."""
    labels = finding_labels(row.findings)
    moments = [finding.since for finding in row.findings]
    if row.lost and row.last_seen is not None:
        moments.append(row.last_seen)
    return TableLine(
        row if is_current else as_stale(row),
        labels[:_MOST_FINDINGS],
        max(0, len(labels) - _MOST_FINDINGS),
        max(moments, default=None),
    )


def finding_labels(findings: Sequence[NodeFinding]) -> tuple[str, ...]:
    """Each finding once with all its GPUs, in the given order: `XID 79 GPU3`, `gemm.slow GPU0,1`."""
    gpus: dict[str, dict[int, None]] = {}
    for finding in findings:
        of_label = gpus.setdefault(Cause.of(finding, finding.check).label, {})
        if finding.device is not None:
            of_label[finding.device] = None
    return tuple(f"{label} GPU{','.join(map(str, indexes))}" if indexes else label for label, indexes in gpus.items())
