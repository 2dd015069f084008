"""Records of baselines: the levels of the fleet and of its devices, as stored and served."""

from muster.check import Worse
from muster.model import Data, Finding, Instant, Json, Name


class Anchor(Data):
    """The level of the fleet that counts as normal: from how many devices it was set, and when."""

    centre: float
    spread: float
    devices: int
    at: Instant


class BaselineRecord(Data):
    """A baseline as it is stored: the metric, the conditions that comparable runs share (`when`), and the anchor.

    `worse` is the direction in which the metric gets worse. Runs from before `reset_at` do not count.
    """

    id: Name
    check: Name
    metric: str
    worse: Worse
    when: Json
    anchor: Anchor | None
    reset_at: Instant = 0.0


class DeviceLevel(Data):
    """The own level of a device, with its UUID: another device in its place gets a level of its own."""

    uuid: str
    centre: float
    spread: float


class LevelsRecord(Data):
    """The own levels of a node's devices in one baseline, by device index; that of the node itself under ""."""

    baseline: Name
    node: Name
    levels: dict[str, DeviceLevel]


class FleetFinding(Finding):
    """A finding about many nodes at once. It stands against none of them."""

    check: str
    baseline: str
    since: Instant


class BaselineView(Data):
    """A baseline as the API serves it: `centre` is the median of the fleet now, `anchor` the normal level.

    `out_of_line` are the nodes that are too far from normal. During a `shift`, no finding stands against them.
    """

    id: Name
    check: Name
    metric: str
    worse: Worse
    when: Json
    devices: int
    nodes: int
    centre: float | None
    anchor: Anchor | None
    out_of_line: tuple[str, ...]
    shift: FleetFinding | None
