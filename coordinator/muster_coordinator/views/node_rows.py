"""The row of a node in the columns of the fleet, and the columns of many rows. Pure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from muster.model import Health, ServiceState, Severity
from muster_coordinator.model.findings import number_in
from muster_coordinator.model.fleet_columns import ColumnNames, NodeColumns, PlaceColumns
from muster_coordinator.model.nodes import NodeFinding, NodeView

NumberedT = TypeVar("NumberedT", bound=Hashable)

_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN)

PlaceNames = tuple[str | None, str | None, str | None]
"""Block, rack and leaf of a node."""

_HEALTH = {health: index for index, health in enumerate(Health)}
_SERVICE = {state: index for index, state in enumerate(ServiceState)}
_SEVERITY = {severity: index for index, severity in enumerate(Severity)}


class NodeRow(NamedTuple):
    """What viewers of the whole fleet see of a node; the fields are those of `NodeColumns`."""

    name: str
    health: Health
    service: ServiceState
    lost: bool
    left: bool
    dry_run: bool
    place: PlaceNames
    worst: str | None
    severity: Severity | None
    findings: int
    model: str | None
    devices: int


class DatedRow(NamedTuple):
    """A row, the version with which it changed, and when; None if that is not known."""

    row: NodeRow
    version: int
    changed_at: float | None


def row_of(view: NodeView) -> NodeRow:
    """The row of a node."""
    worst = min(view.findings, key=_urgency, default=None)
    where = view.topology
    return NodeRow(
        name=view.name,
        health=view.health,
        service=view.service,
        lost=view.lost,
        left=view.left,
        dry_run=view.dry_run,
        place=(where.block, where.rack, where.leaf),
        worst=None if worst is None else " ".join(filter(None, (worst.code, number_in(worst.evidence)))),
        severity=None if worst is None else worst.severity,
        findings=len(view.findings),
        model=view.devices[0].model if view.devices else None,
        devices=len(view.devices),
    )


def changed_before(view: NodeView) -> float | None:
    """When a node changed before this coordinator started, by its findings and its silence; None if they do not say."""
    moments = [finding.since for finding in view.findings]
    if view.lost:
        moments.append(view.last_seen)
    return max(moments, default=None)


def columns(rows: Sequence[DatedRow], at: float) -> tuple[ColumnNames, NodeColumns]:
    """The rows in columns at the time `at`, in the order of `rows`, and the names that the columns have indexes to."""
    places, codes, models = _Numbering[PlaceNames](), _Numbering[str](), _Numbering[str]()
    plain = [dated.row for dated in rows]
    nodes = NodeColumns.model_construct(
        name=_column(plain, lambda row: row.name),
        health=_column(plain, lambda row: _HEALTH[row.health]),
        service=_column(plain, lambda row: _SERVICE[row.service]),
        lost=_column(plain, lambda row: int(row.lost)),
        left=_column(plain, lambda row: int(row.left)),
        dry_run=_column(plain, lambda row: int(row.dry_run)),
        place=_column(plain, lambda row: places.number(row.place)),
        worst=_column(plain, lambda row: None if row.worst is None else codes.number(row.worst)),
        severity=_column(plain, lambda row: None if row.severity is None else _SEVERITY[row.severity]),
        findings=_column(plain, lambda row: row.findings),
        model=_column(plain, lambda row: None if row.model is None else models.number(row.model)),
        devices=_column(plain, lambda row: row.devices),
        changed_s=tuple(_age(dated.changed_at, at) for dated in rows),
    )
    block, rack, leaf = zip(*places.names, strict=True) if places.names else ((), (), ())
    names = ColumnNames(place=PlaceColumns(block=block, rack=rack, leaf=leaf), worst=codes.names, model=models.names)
    return names, nodes


class _Numbering(Generic[NumberedT]):
    """Numbers different keys in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[NumberedT, int] = {}

    def number(self, key: NumberedT) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    @property
    def names(self) -> tuple[NumberedT, ...]:
        """The keys by number."""
        return tuple(self._numbers)


ColumnT = TypeVar("ColumnT")


def _column(rows: Iterable[NodeRow], value: Callable[[NodeRow], ColumnT]) -> tuple[ColumnT, ...]:
    return tuple(map(value, rows))


def _age(moment: float | None, at: float) -> int | None:
    """Seconds from `moment` to `at`: exact up to an hour, then of two digits, which compress to half the size."""
    if moment is None:
        return None
    seconds = max(0, round(at - moment))
    return seconds if seconds <= 3600 else round(seconds, 2 - len(str(seconds)))


def _urgency(finding: NodeFinding) -> tuple[int, float]:
    return _WORST_FIRST.index(finding.severity), finding.since
