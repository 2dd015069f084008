"""The normal values of one metric of one check, over all devices that are measured under the same conditions.

The idea: compare each device with the fleet (outlier) and with its own past (drift), and never hold a common cause
against single nodes.

- A device counts with the median of its last three values. The median of its first eight values is its own level.
- A node counts with at most the usual number of devices, even if it announces more: see `shares`.
- The anchor is the level of the fleet that counts as normal: median and spread. It is set when enough devices of enough
  nodes were measured, and again each time their number has doubled. Prevents: the first devices decide for all.
- The anchor follows the fleet when it gets better, never when it gets worse. If the centre of the fleet, or many nodes
  at once, get worse, that is a shift. A shift is a finding about the fleet and stands against no node. It ends when the
  fleet is back, or when an operator resets the baseline. Prevents: a driver slows all nodes, and slow becomes normal.
- Without a shift, a device is an outlier if it is too far from the anchor, and drifts if it is too far from its own
  level.

Example: 64 devices measure about 700 TFLOP/s with a spread of 7, which counts as at least 1.5 % = 10.5. A device at 640
is 8.6 % worse. The limit is five spreads, widened for 64 devices: 9.7 %, or 632. At 630 the device is an outlier. A
device that began at 720 and now reaches 640, 11 % less, drifts, although it is no outlier.

A reading costs O(log n) comparisons and one insertion into a sorted list for n devices. All devices are compared again
only when the anchor is set.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from muster.check import Worse
from muster.model import Finding, Json
from muster_coordinator.model.baselines import (
    Anchor,
    BaselineRecord,
    BaselineView,
    FleetFinding,
    LevelsRecord,
)
from muster_coordinator.normal.baseline_findings import device_finding, shift_finding
from muster_coordinator.normal.normality import (
    FLEET_FLOOR,
    LEAST_PEERS,
    OWN_FLOOR,
    TYPICAL_ERROR,
    Level,
    are_enough,
    fleet_level,
    level_of,
    share_worse,
    shift_of,
    too_bad,
)
from muster_coordinator.normal.ranked import Ranked
from muster_coordinator.normal.readings import DeviceIndex, MetricReading, Track, restored_devices, stored_devices
from muster_coordinator.normal.shares import Shares
from muster_coordinator.normal.suspects import FoundByNode, NodeStanding, Suspects


class Learned(NamedTuple):
    """The result of a run: findings that stand against nodes now, and the records to store."""

    held: FoundByNode
    baseline: BaselineRecord | None
    levels: tuple[LevelsRecord, ...]


class Baseline:
    """One metric under one condition."""

    def __init__(self, *, id: str, subject: str, check: str, metric: str, worse: Worse, when: Json) -> None:
        self.id = id
        self.subject = subject
        self.check = check
        self.metric = metric
        self.devices = 0
        self.worse = worse
        self._when = when
        self._anchor: Anchor | None = None
        self._reset_at = 0.0
        self._founder = ""
        self._nodes: dict[str, dict[DeviceIndex, Track]] = {}
        self._measured: dict[str, float] = {}  # the time of each node's last measurement, the latest last
        self._alike = 0
        self._shares = Shares()
        self._counting = 0  # devices that count
        self._typical = Ranked()  # the median of each device that counts and has one
        self._noises = Ranked()  # the noise of each device that counts and has an own level
        self._suspects = Suspects()

    def restore(self, stored: BaselineRecord | None, levels: Iterable[LevelsRecord], alike: int) -> None:
        """Restores the stored records, before the first reading. `alike` nodes have the machine type of its nodes."""
        self._alike = alike
        if stored is not None:
            self._anchor, self._reset_at, self._founder = stored.anchor, stored.reset_at, stored.founder or ""
        standings: list[tuple[str, float, NodeStanding]] = []
        for record in sorted(levels, key=lambda record: record.at):
            tracks = self._nodes[record.node] = restored_devices(record.levels)
            self.devices += len(tracks)
            self._shares.replace(0, len(tracks))
            if record.at:
                self._measured[record.node] = record.at
                standings.append((record.node, record.at, NodeStanding(record.out_of_line, record.held)))
        self._suspects.restore(None if stored is None else stored.since, standings)
        self._count_again()

    def take(
        self,
        node: str,
        readings: Sequence[MetricReading],
        present: Set[DeviceIndex],
        now: float,
        *,
        alike: int,
        founder: str,
    ) -> Learned:
        """Adds the readings of one run and compares its devices; the devices of all nodes if the anchor is new.

        `present` are the devices of the node, empty when unknown; `alike` nodes have the node's machine type. `founder`
        is the only node that has measured, or empty.
        """
        self._alike = alike
        if now < self._reset_at:
            return Learned({}, None, ())
        before_this = self._stored_state
        self._founder = founder
        self._measured.pop(node, None)
        self._measured[node] = now
        before = self._withdraw(node)
        if present:
            self._drop(node, [device for device in self._nodes.get(node, ()) if device not in {None, *present}])
        for reading in readings:
            self._add(node, reading)
        self._enter(node, before)
        settled = self._settle(now)
        held: dict[str, tuple[Finding, ...]] = {}
        for each in self._measured if settled else (node,):
            found = tuple(finding for device in self._nodes[each] for finding in self._judge(each, device))
            held.update(
                self._suspects.take(
                    each, found, at=self._measured[each], nodes=self._judged, shifted=self._has_shifted, now=now
                )
            )
        changed = {node, *self._suspects.take_changed()} & self._nodes.keys()
        record = self.record() if self._stored_state != before_this else None
        return Learned(held, record, tuple(map(self.levels, sorted(changed))))

    def reset(self, now: float) -> Learned:
        """Resets the normal values of the fleet and of every device to the present ones."""
        self._anchor, self._reset_at = None, now
        self._suspects.out_of_line.clear()
        self._suspects.since = None
        for tracks in self._nodes.values():
            for track in tracks.values():
                track.forget_own()
        self._count_again()
        self._settle(now)
        return Learned(self.release(), self.record(), tuple(map(self.levels, sorted(self._nodes))))

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        before = self._withdraw(node)
        self._drop(node, [*self._nodes.get(node, ())])
        self._enter(node, before)
        self._nodes.pop(node, None)
        self._measured.pop(node, None)
        self._suspects.forget(node)

    def release(self) -> FoundByNode:
        """Withdraws all findings. Returns the nodes, each without findings."""
        return self._suspects.release()

    @property
    def measured(self) -> Mapping[str, float]:
        """When each node that is still here last measured, the one that measured last at the end."""
        return self._measured

    @property
    def nodes(self) -> int:
        """Number of measured nodes."""
        return len(self._nodes)

    @property
    def last_at(self) -> float:
        """The time of the last measurement; 0 if no node that has measured is left."""
        return self._measured[next(reversed(self._measured))] if self._measured else 0.0

    def view(self) -> BaselineView:
        """The baseline as the API serves it."""
        return BaselineView(
            id=self.id,
            check=self.check,
            metric=self.metric,
            worse=self.worse,
            when=self._when,
            devices=self.devices,
            nodes=len(self._nodes),
            centre=self._centre,
            low=self._typical.low,
            high=self._typical.high,
            anchor=self._anchor,
            out_of_line=tuple(sorted(self._suspects.out_of_line)),
            shift=self.fleet_finding(),
        )

    def fleet_finding(self) -> FleetFinding | None:
        """The finding that the fleet has become worse; None if it has not."""
        if self._suspects.since is None or self._anchor is None or self._centre is None:
            return None
        return shift_finding(
            self.record(),
            centre=self._centre,
            anchor=self._anchor,
            since=self._suspects.since,
            out_of_line=len(self._suspects.out_of_line),
            nodes=len(self._nodes),
        )

    def _add(self, node: str, reading: MetricReading) -> None:
        tracks = self._nodes.setdefault(node, {})
        if reading.device in tracks and tracks[reading.device].uuid != reading.uuid:  # a new device in this place
            self._drop(node, [reading.device])
        if reading.device not in tracks:
            tracks[reading.device] = Track(reading.uuid)
            self.devices += 1
        tracks[reading.device].add(reading.value)

    def _drop(self, node: str, devices: Iterable[DeviceIndex]) -> None:
        """Forgets devices that are no longer there."""
        for device in devices:
            del self._nodes[node][device]
            self.devices -= 1

    def _counted(self, node: str) -> list[Track]:
        """The devices of a node that count."""
        return [*islice(self._nodes.get(node, {}).values(), self._shares.each)]

    def _withdraw(self, node: str) -> int:
        """Removes the devices of a node from the counts. Returns how many devices the node has."""
        for track in self._counted(node):
            self._typical.replace(track.typical, None)
            self._noises.replace(track.noise, None)
            self._counting -= 1
        return len(self._nodes.get(node, ()))

    def _enter(self, node: str, before: int) -> None:
        """Counts the devices of a node again. `before` is what `_withdraw` returned."""
        if self._shares.replace(before, len(self._nodes.get(node, ()))):
            self._count_again()
            return
        for track in self._counted(node):
            self._typical.replace(None, track.typical)
            self._noises.replace(None, track.noise)
            self._counting += 1

    def _count_again(self) -> None:
        """Counts the devices of all nodes again, in time proportional to their number."""
        tracks = [track for node in self._nodes for track in self._counted(node)]
        self._counting = len(tracks)
        self._typical = Ranked(track.typical for track in tracks)
        self._noises = Ranked(track.noise for track in tracks)

    def _settle(self, now: float) -> bool:
        """Sets the anchor if the fleet has doubled or become better. Returns whether it did."""
        count = len(self._typical)
        if self._centre is None or count <= LEAST_PEERS or not are_enough(self._judged, self._alike):
            return False
        if self._anchor is not None:
            share = share_worse(self._centre, self._anchor.centre, self.worse)
            shift = self._shift(self._anchor)
            doubled = count >= 2 * self._anchor.devices and self._suspects.since is None and share <= shift
            better = (
                count >= self._anchor.devices and share < -shift
            )  # the first nodes that are measured after a restart are not the whole fleet
            if not doubled and not better:
                return False
        level = level_of(self._typical.values)
        self._anchor = Anchor(centre=level.centre, spread=level.spread, devices=count, at=now)
        return True

    @property
    def _centre(self) -> float | None:
        return self._typical.middle

    @property
    def _has_shifted(self) -> bool:
        if self._anchor is None or self._centre is None or len(self._typical) <= LEAST_PEERS:
            return False
        return share_worse(self._centre, self._anchor.centre, self.worse) > self._shift(self._anchor)

    @property
    def _judged(self) -> int:
        """The nodes whose devices were measured often enough; an average if only some devices of a node were."""
        return len(self._nodes) * len(self._typical) // max(self._counting, 1)

    def _shift(self, anchor: Anchor) -> float:
        """The share by which the centre of the fleet must become worse to be a shift."""
        return shift_of(Level(anchor.centre, anchor.spread), min(anchor.devices, len(self._typical)))

    def _judge(self, node: str, device: DeviceIndex) -> list[Finding]:
        track = self._nodes[node][device]
        value = track.typical
        if value is None:
            return []
        found, noise = [], self._noises.middle or 0.0
        if self._anchor is not None:
            floor = max(FLEET_FLOOR, TYPICAL_ERROR * noise)
            fleet = fleet_level(Level(self._anchor.centre, self._anchor.spread), floor, self._anchor.devices)
            if too_bad(value, fleet, self.worse, floor):
                others = f"that is normal for {len(self._typical)} devices"
                found.append(self._finding("outlier", value, fleet, others, device=device))
        own = track.own
        if own is not None and too_bad(value, own, self.worse, max(OWN_FLOOR, noise)):
            found.append(self._finding("drift", value, own, "that it began with", device=device))
        return found

    def _finding(self, what: str, value: float, level: Level, whose: str, *, device: DeviceIndex) -> Finding:
        return device_finding(
            self.record(), f"baseline.{what}", value, level, whose, device=device, devices=len(self._typical)
        )

    @property
    def _stored_state(self) -> tuple[object, ...]:
        """What the stored baseline has that changes."""
        return self._anchor, self._reset_at, self._suspects.since, self._founder

    def record(self) -> BaselineRecord:
        """The baseline as it is stored."""
        return BaselineRecord(
            id=self.id,
            check=self.check,
            metric=self.metric,
            worse=self.worse,
            when=self._when,
            anchor=self._anchor,
            reset_at=self._reset_at,
            founder=self._founder,
            since=self._suspects.since,
        )

    def levels(self, node: str) -> LevelsRecord:
        """The devices of a node as they are stored."""
        standing = self._suspects.standing(node)
        return LevelsRecord(
            baseline=self.id,
            node=node,
            levels=stored_devices(self._nodes[node]),
            at=self._measured.get(node, 0.0),
            out_of_line=standing.out_of_line,
            held=standing.held,
        )
