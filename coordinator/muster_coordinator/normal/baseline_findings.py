"""The findings of a baseline: about a device that is out of line, and about a fleet that has become worse.

Example: `tflops 630 is 10.0% worse than the 700 that is normal for 64 devices (spread 14)`. Both take constant time.
"""

from muster.model import Action, Finding, Severity
from muster_coordinator.model.baselines import Anchor, BaselineRecord, FleetFinding
from muster_coordinator.normal.normality import Level, share_worse
from muster_coordinator.normal.readings import DeviceIndex


def device_finding(
    baseline: BaselineRecord,
    code: str,
    value: float,
    level: Level,
    whose: str,
    *,
    device: DeviceIndex,
    devices: int,
) -> Finding:
    """The finding that the value of a device is too far from a level; `whose` says for people which level it is."""
    share = share_worse(value, level.centre, baseline.worse)
    return Finding(
        code=code,
        summary=f"{baseline.metric} {value:.4g} is {share:.1%} worse than the {level.centre:.4g} {whose} "
        f"(spread {level.spread:.2g})",
        severity=Severity.WARNING,
        device=device,
        action=Action.INSPECT_HARDWARE,
        evidence={
            "metric": baseline.metric,
            "value": value,
            "centre": level.centre,
            "spread": level.spread,
            "devices": devices,
            "baseline": baseline.id,
        },
    )


def shift_finding(
    baseline: BaselineRecord, *, centre: float, anchor: Anchor, since: float, out_of_line: int, nodes: int
) -> FleetFinding:
    """The finding that the fleet has become worse: its centre was that of the anchor, and is now `centre`."""
    share = share_worse(centre, anchor.centre, baseline.worse)
    return FleetFinding(
        code="baseline.shift",
        summary=f"{baseline.check} {baseline.metric} has become worse in the fleet: its centre is {centre:.4g}, "
        f"{share:.1%} worse than the normal {anchor.centre:.4g}, and {out_of_line} of {nodes} nodes are out of line",
        severity=Severity.WARNING,
        evidence={"centre": centre, "anchor": anchor.centre, "out_of_line": out_of_line, "nodes": nodes},
        check=baseline.check,
        baseline=baseline.id,
        since=since,
    )
