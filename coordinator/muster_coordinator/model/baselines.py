"""What is normal for the fleet and for its devices, as it is stored and served."""

from muster.check import Worse
from muster.model import Data, Finding, Instant, Json, Name


class Anchor(Data):
    """The level of the fleet that counts as normal, from how many devices it was taken and when."""

    centre: float
    spread: float
    devices: int
    at: Instant


class BaselineRecord(Data):
    """A baseline as it is stored: what is compared, where, and what is normal; `when` holds what comparable runs share.

    `worse` says in which direction the metric gets worse. Runs before `reset_at` teach nothing any more.
    """

    id: Name
    check: Name
    metric: str
    worse: Worse
    when: Json
    anchor: Anchor | None
    reset_at: Instant = 0.0


class DeviceLevel(Data):
    """What a device has shown first, and which device it is: another one in its place begins anew."""

    uuid: str
    centre: float
    spread: float


class LevelsRecord(Data):
    """The own levels of a node's devices in one baseline, by device index; of the node itself under ""."""

    baseline: Name
    node: Name
    levels: dict[str, DeviceLevel]


class FleetFinding(Finding):
    """Something that is wrong with many nodes at once, and therefore held against none of them."""

    check: str
    baseline: str
    since: Instant


class BaselineView(Data):
    """A baseline as the API serves it: `centre` is where the fleet is now, `anchor` what it is compared with.

    `out_of_line` are the nodes that are worse than they should be; while there is a `shift`, it is held against none.
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
