"""What is normal for one metric of one check, over all devices that are measured in the same way.

- A device counts by the median of its last values. What it has shown first, over several runs, is its own level.
- The anchor is the level of the fleet that counts as normal. It is taken when there are enough devices, and taken again
  each time their number has doubled, so that the first few do not decide for all.
- The anchor follows the fleet to the better, but never to the worse: where the fleet becomes worse as a whole, or many
  nodes at once, that is a shift. It is found as such and held against no node, until the fleet is back or an operator
  says that this is normal now. So a bad fleet does not teach that bad is normal.
- While there is no shift, a device is an outlier when it is too far from the anchor, and drifts when it is too far from
  its own level.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from muster.check import Worse
from muster.model import Action, Finding, Json, Severity
from muster_coordinator.normality import (
    EARLIER_RUNS,
    FLEET_FLOOR,
    LEAST_PEERS,
    OWN_FLOOR,
    RECENT_RUNS,
    SHIFT,
    Level,
    level_of,
    share_worse,
    too_bad,
)
from muster_coordinator.readings import Device
from muster_coordinator.records import Anchor, BaselineRecord, BaselineView, DeviceLevel, FleetFinding, LevelsRecord
from muster_coordinator.suspects import Held, Suspects


class Reading(NamedTuple):
    """One number of one device; `uuid` is empty where nobody knows it."""

    device: Device
    uuid: str
    value: float


@dataclass(slots=True)
class Track:
    """A device's last values, as many as are needed, and its own level when there were enough."""

    uuid: str
    own: Level | None = None
    values: tuple[float, ...] = ()

    @property
    def typical(self) -> float | None:
        """What the device is compared by."""
        last = self.values[-RECENT_RUNS:]
        return sorted(last)[RECENT_RUNS // 2] if len(last) == RECENT_RUNS else None

    def add(self, value: float) -> bool:
        """Notes a value; whether the own level is known since now."""
        self.values = (*self.values, value)
        learned = self.own is None and len(self.values) == EARLIER_RUNS
        if learned:
            self.own = level_of(self.values)
        if self.own is not None:
            self.values = self.values[-RECENT_RUNS:]
        return learned


class Learned(NamedTuple):
    """What came of a run: what is held against nodes now, and what there is to store."""

    held: Held
    anchor: BaselineRecord | None
    levels: LevelsRecord | None


class Baseline:
    """One metric under one condition. It takes little time for each reading, however many devices there are."""

    def __init__(self, id: str, check: str, metric: str, worse: Worse, when: Json) -> None:
        self.id = id
        self.check = check
        self.metric = metric
        self.devices = 0
        self._worse = worse
        self._when = when
        self._anchor: Anchor | None = None
        self._nodes: dict[str, dict[Device, Track]] = {}
        self._typical: list[float] = []  # of every device that has one, sorted
        self._suspects = Suspects()

    def restore(self, anchor: Anchor | None, levels: Iterable[LevelsRecord]) -> None:
        """Takes over what is stored, before the first reading."""
        self._anchor = anchor
        for record in levels:
            tracks = self._nodes[record.node] = {}
            for name, level in record.levels.items():
                device = int(name) if name else None
                tracks[device] = Track(level.uuid, Level(level.centre, level.spread))
            self.devices += len(tracks)

    def take(self, node: str, readings: Iterable[Reading], now: float) -> Learned:
        """Learns from the readings of one run and compares its devices; those of all nodes if the anchor is new."""
        learned = [self._add(node, reading) for reading in readings]
        settled = self._settle(now)
        held: dict[str, tuple[Finding, ...]] = {}
        for each in self._nodes if settled else (node,):
            found = tuple(finding for device in self._nodes[each] for finding in self._judge(each, device))
            held.update(self._suspects.take(each, found, nodes=len(self._nodes), shifted=self._has_shifted, now=now))
        return Learned(held, self._record() if settled else None, self._levels(node) if any(learned) else None)

    def reset(self, now: float) -> tuple[Held, BaselineRecord | None]:
        """Lets what is measured now count as normal, for the fleet and for every device."""
        self._anchor = None
        self._suspects.out_of_line.clear()
        self._suspects.since = None
        for tracks in self._nodes.values():
            for track in tracks.values():
                track.own = None
        return self.release(), self._record() if self._settle(now) else None

    def release(self) -> Held:
        """Takes back what is held against anybody."""
        return self._suspects.release()

    def view(self) -> BaselineView:
        """The baseline as it stands."""
        return BaselineView(
            id=self.id,
            check=self.check,
            metric=self.metric,
            worse=self._worse,
            when=self._when,
            devices=self.devices,
            nodes=len(self._nodes),
            centre=self._centre,
            anchor=self._anchor,
            out_of_line=tuple(sorted(self._suspects.out_of_line)),
            shift=self.fleet_finding(),
        )

    def fleet_finding(self) -> FleetFinding | None:
        """That the fleet has become worse, if it has."""
        if self._suspects.since is None or self._anchor is None or self._centre is None:
            return None
        share = share_worse(self._centre, self._anchor.centre, self._worse)
        out, nodes = len(self._suspects.out_of_line), len(self._nodes)
        return FleetFinding(
            code="baseline.shift",
            summary=f"{self.check} {self.metric} has become worse in the fleet: its centre is {self._centre:.4g}, "
            f"{share:.1%} worse than the normal {self._anchor.centre:.4g}, and {out} of {nodes} nodes are out of line",
            severity=Severity.WARNING,
            evidence={"centre": self._centre, "anchor": self._anchor.centre, "out_of_line": out, "nodes": nodes},
            check=self.check,
            baseline=self.id,
            since=self._suspects.since,
        )

    def _add(self, node: str, reading: Reading) -> bool:
        tracks = self._nodes.setdefault(node, {})
        track = tracks.get(reading.device)
        before = None if track is None else track.typical
        if track is None or track.uuid != reading.uuid:  # new here, or in the place of another
            self.devices += track is None
            track = tracks[reading.device] = Track(reading.uuid)
        learned = track.add(reading.value)
        after = track.typical
        if before is not None:
            del self._typical[bisect_left(self._typical, before)]
        if after is not None:
            insort(self._typical, after)
        return learned

    def _settle(self, now: float) -> bool:
        """Takes the anchor if it is time to; whether it did."""
        count = len(self._typical)
        if count <= LEAST_PEERS:
            return False
        if self._anchor is not None:
            share = share_worse(self._typical[count // 2], self._anchor.centre, self._worse)
            doubled = count >= 2 * self._anchor.devices and self._suspects.since is None and share <= SHIFT
            if not doubled and share >= -SHIFT:
                return False
        level = level_of(self._typical)
        self._anchor = Anchor(centre=level.centre, spread=level.spread, devices=count, at=now)
        return True

    @property
    def _centre(self) -> float | None:
        return self._typical[len(self._typical) // 2] if self._typical else None

    @property
    def _has_shifted(self) -> bool:
        if self._anchor is None or self._centre is None or len(self._typical) <= LEAST_PEERS:
            return False
        return share_worse(self._centre, self._anchor.centre, self._worse) > SHIFT

    def _judge(self, node: str, device: Device) -> list[Finding]:
        track = self._nodes[node][device]
        value = track.typical
        if value is None:
            return []
        found = []
        if self._anchor is not None:
            fleet = Level(self._anchor.centre, self._anchor.spread)
            if too_bad(value, fleet, self._worse, FLEET_FLOOR):
                others = f"that is normal for {len(self._typical)} devices"
                found.append(self._finding("outlier", value, fleet, others, device=device))
        if track.own is not None and too_bad(value, track.own, self._worse, OWN_FLOOR):
            found.append(self._finding("drift", value, track.own, "that it began with", device=device))
        return found

    def _finding(self, what: str, value: float, level: Level, whose: str, *, device: Device) -> Finding:
        share = share_worse(value, level.centre, self._worse)
        return Finding(
            code=f"baseline.{what}",
            summary=f"{self.metric} {value:.4g} is {share:.1%} worse than the {level.centre:.4g} {whose} "
            f"(spread {level.spread:.2g})",
            severity=Severity.WARNING,
            device=device,
            action=Action.INSPECT_HARDWARE,
            evidence={
                "metric": self.metric,
                "value": value,
                "centre": level.centre,
                "spread": level.spread,
                "devices": len(self._typical),
                "baseline": self.id,
            },
        )

    def _record(self) -> BaselineRecord:
        assert self._anchor is not None, "there is something to store since it was taken"
        return BaselineRecord(
            id=self.id, check=self.check, metric=self.metric, worse=self._worse, when=self._when, anchor=self._anchor
        )

    def _levels(self, node: str) -> LevelsRecord:
        levels = {
            "" if device is None else str(device): DeviceLevel(
                uuid=track.uuid, centre=track.own.centre, spread=track.own.spread
            )
            for device, track in self._nodes[node].items()
            if track.own is not None
        }
        return LevelsRecord(baseline=self.id, node=node, levels=levels)
