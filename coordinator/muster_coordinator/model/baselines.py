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

    `worse` is the direction in which the metric gets worse. Runs from before `reset_at` do not count. `founder` is the
    only node that has measured so far, and empty if several have; None in a record of an earlier release, of which the
    last values are not stored. `since` is the begin of a shift.
    """

    id: Name
    check: Name
    metric: str
    worse: Worse
    when: Json
    anchor: Anchor | None
    reset_at: Instant = 0.0
    founder: str | None = None
    since: Instant | None = None


DeviceLevel = tuple[str, float | None, float | None, tuple[float, ...]]
"""The UUID of a device, centre and spread of its own level (None until it has one), and its last values.

Another device in its place has another UUID, and gets a level of its own. A tuple, because a large fleet has a million
of them, and reads them all after a restart.
"""


class LevelsRecord(Data):
    """The devices of a node in one baseline, by device index; the node itself under "". Empty if the node has left.

    `at` is when the node last measured; 0 in a record of an earlier release. `out_of_line` means that it was too far
    from normal then, and `held` that a finding stands against it for that.
    """

    baseline: Name
    node: Name
    levels: dict[str, DeviceLevel]
    at: Instant = 0.0
    out_of_line: bool = False
    held: bool = False


class FingerprintRecord(Data):
    """A comparison of fingerprints as it is stored: those of the computation `name` of a check.

    `subject` names it in the evidence about nodes. `founder` and `since` are as in a baseline.
    """

    id: Name
    subject: str
    check: Name
    name: str
    founder: str
    since: Instant | None = None


class ResultsRecord(Data):
    """The fingerprints of a node's devices, by device index; that of the node itself under "". See `LevelsRecord`.

    `at` is when the node last measured something new or was out of line.
    """

    fingerprint: Name
    node: Name
    results: dict[str, str]
    at: Instant = 0.0
    out_of_line: bool = False
    held: bool = False


class FleetFinding(Finding):
    """A finding about many nodes at once. It stands against none of them."""

    check: str
    baseline: str
    since: Instant


class BaselineView(Data):
    """A baseline as the API serves it: `centre` is the median of the fleet now, `anchor` the normal level.

    Nine of ten devices are from `low` to `high` now: one in twenty is below, one in twenty above. `out_of_line` are the
    nodes that are too far from normal. During a `shift`, no finding stands against them.
    """

    id: Name
    check: Name
    metric: str
    worse: Worse
    when: Json
    devices: int
    nodes: int
    centre: float | None
    low: float | None = None
    high: float | None = None
    anchor: Anchor | None
    out_of_line: tuple[str, ...]
    shift: FleetFinding | None
