"""All baselines of the fleet: which runs are compared with each other, and the findings of the comparisons.

The idea: two runs are comparable if they have the same check, parameters, kind of hardware, and facts of
`COMPARED_BY`. The kind is the machine type and the models of the GPUs.
Each metric under such a condition has its own baseline. Only runs of a single node that did not fail count: a value
that a reference calls bad never becomes normal. Results that must be equal bit by bit (fingerprints) are compared only
under the same versions of software. Speeds are compared across versions: a driver that makes the fleet slower must show
as a shift.

Example: 500 nodes of type a3 and 12 of type a4 run gemm with shape 8192. There are two baselines for `tflops`, one for
each machine type.

Memory is bounded. The baseline that the fewest nodes have measured is dropped first; of several, the one that was not
measured for the longest time. Prevents: a node makes up facts and begins thousands of baselines. It loses its own. A
device takes about 500 bytes in a baseline: 10,000 nodes with 8 devices and ten metrics take 400 MB. A run costs one
update for each reading, and dropping a baseline a scan over all baselines.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from muster.check import Worse
from muster.errors import Refused, unknown
from muster.model import Finding, Inventory, Json, Run, Verdict
from muster_coordinator.model.baseline_commands import (
    EraseBaseline,
    SaveBaseline,
    SaveFingerprint,
    SaveLevels,
    SaveResults,
)
from muster_coordinator.model.baselines import BaselineView, FleetFinding, LevelsRecord, ResultsRecord
from muster_coordinator.model.events import FleetCommand
from muster_coordinator.model.hardware_kind import HardwareKind
from muster_coordinator.normal.baseline import Baseline, Learned
from muster_coordinator.normal.comparability import (
    MAX_CONDITION_CHARS,
    announced_of,
    condition_of,
    hardware_condition,
    key_of,
    results_of,
    subject_of,
)
from muster_coordinator.normal.fingerprints import ComparedResults, Fingerprints
from muster_coordinator.normal.founders import Founders
from muster_coordinator.normal.readings import DeviceIndex, MetricReading, by_device
from muster_coordinator.normal.stored_comparisons import StoredComparisons

COMPARED = ("baseline.outlier", "baseline.drift", "baseline.fingerprint")
"""Codes of the findings of comparisons against a node."""

MAX_BASELINES = 1_000
MAX_DEVICES = 2_000_000
"""Maximum number of counted devices over all baselines. A device counts in every baseline that it is in."""

DEVICES_AT_ONCE = 50_000
"""Devices that are restored at once after a restart: about 0.2 s of a core."""

MAX_RESULTS = 64
"""Maximum number of fingerprints of one run that are compared; a matrix product has one for each number format."""

MAX_READINGS = 2_000
"""Maximum number of values of one run that are compared: about ten metrics of 128 devices. Further metrics are left
out.
"""


@dataclass(slots=True)
class ComparedRun:
    """The result of a run: the findings that stand against each node now, by subject, and commands to store.

    A subject is a metric or result of a check with certain parameters. A node with new hardware or software is compared
    with other nodes than before. The findings of the new comparison replace those of the old one.
    """

    held: dict[tuple[str, str], tuple[Finding, ...]] = field(default_factory=dict)
    commands: list[FleetCommand] = field(default_factory=list)

    def hold(self, subject: str, held: Mapping[str, tuple[Finding, ...]]) -> None:
        self.held.update(((node, subject), findings) for node, findings in held.items())

    def note(self, subject: str, learned: Learned | ComparedResults) -> None:
        """Notes what one comparison has learned."""
        self.hold(subject, learned.held)
        match learned:
            case Learned(baseline=baseline, levels=levels):
                self.commands += [] if baseline is None else [SaveBaseline(baseline)]
                self.commands += map(SaveLevels, levels)
            case ComparedResults(fingerprint=fingerprint, results=results):
                self.commands += [] if fingerprint is None else [SaveFingerprint(fingerprint)]
                self.commands += map(SaveResults, results)


NOTHING = ComparedRun()
"""The result of a run that is not compared. Most are not."""


class Baselines:
    """All baselines and fingerprints; the last measured ones are at the end."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Baseline | Fingerprints] = OrderedDict()
        self._founders = Founders()
        self._devices = 0
        self._stored = StoredComparisons()

    def restore(self, stored: StoredComparisons) -> None:
        """Takes over what is stored, and restores the first part of it."""
        self._stored = stored
        self.restore_some(DEVICES_AT_ONCE)

    def restore_some(self, devices: int) -> None:
        """Restores stored comparisons, until about as many devices are compared again."""
        if not self._stored:
            return
        for key in [*self._stored.measured()]:
            if devices <= 0:
                return
            restored = self._restore_baseline(key) or self._restore_fingerprints(key)
            devices -= 1 if restored is None else 1 + restored.devices
        self._kept = OrderedDict(sorted(self._kept.items(), key=lambda item: item[1].last_at))
        self._founders.order(self._kept)

    def records(self) -> list[FleetCommand]:
        """The commands that store everything again."""
        commands: list[FleetCommand] = []
        for kept in self._kept.values():
            match kept:
                case Baseline():
                    commands += [SaveBaseline(kept.record()), *map(SaveLevels, map(kept.levels, kept.measured))]
                case Fingerprints():
                    commands += [SaveFingerprint(kept.record()), *map(SaveResults, map(kept.results, kept.measured))]
        return commands

    def observe(
        self,
        run: Run,
        metrics: Mapping[str, Worse],
        inventory: Inventory,
        now: float,
        *,
        kind: HardwareKind | None = None,
        alike: int = 1,
    ) -> ComparedRun:
        """Adds a run and compares it by `metrics`.

        `alike` is the number of nodes of the same `kind` of hardware as its node, by default that of the inventory.
        """
        if not metrics and "fingerprints" not in run.facts:
            return NOTHING
        if run.group is not None or run.verdict not in (Verdict.PASS, Verdict.WARN):
            return NOTHING
        if len(json.dumps([condition_of(run), run.facts.get("software")])) > MAX_CONDITION_CHARS:
            return NOTHING  # these are part of every key below, and are checked once here instead of for each metric
        compared = ComparedRun()
        when = condition_of(run) | hardware_condition(kind or HardwareKind.of(inventory, inventory.machine_type))
        self._compare_numbers(run, metrics, inventory, compared, when=when, now=now, alike=alike)
        self._compare_results(run, inventory, compared, now=now, alike=alike)
        self._drop_rarest(compared)
        return compared

    def reset(self, id: str, now: float) -> ComparedRun:
        """Resets a baseline to the present values. Raises Refused if there is no baseline with this id."""
        self.restore_some(MAX_DEVICES)
        known = {kept.id: kept for kept in self._kept.values() if isinstance(kept, Baseline)}
        if id not in known:
            raise Refused(unknown("baseline", id, known))
        compared = ComparedRun()
        compared.note(known[id].subject, known[id].reset(now))
        return compared

    def forget(self, node: str) -> list[FleetCommand]:
        """Forgets a node that has left. Its devices no longer count, and nothing else is stored of it."""
        self.restore_some(MAX_DEVICES)
        had = self._stored.forget(node)
        fingerprints: set[str] = set()
        for key, kept in self._kept.items():
            before = kept.devices
            kept.forget(node)
            self._devices -= before - kept.devices
            if kept.devices < before:
                (had if isinstance(kept, Baseline) else fingerprints).add(key)
        return [
            *(SaveLevels(LevelsRecord(baseline=key, node=node, levels={})) for key in sorted(had)),
            *(SaveResults(ResultsRecord(fingerprint=key, node=node, results={})) for key in sorted(fingerprints)),
        ]

    def views(self) -> list[BaselineView]:
        """Every baseline as the API serves it, by id."""
        self.restore_some(MAX_DEVICES)
        views = (kept.view() for kept in self._kept.values() if isinstance(kept, Baseline))
        return sorted(views, key=lambda view: view.id)

    def of_node(self, node: str) -> list[BaselineView]:
        """The baseline of each check and metric that the node measured last; without those not yet restored.

        It looks at each baseline once, so it costs less than a millisecond.
        """
        found: dict[tuple[str, str], tuple[float, Baseline]] = {}
        for kept in self._kept.values():
            if isinstance(kept, Baseline) and (at := kept.measured.get(node)) is not None:
                latest = found.get((kept.check, kept.metric))
                if latest is None or at >= latest[0]:
                    found[kept.check, kept.metric] = at, kept
        return [kept.view() for _, kept in found.values()]

    def findings(self) -> tuple[FleetFinding, ...]:
        """Findings about many nodes at once."""
        found = (kept.fleet_finding() for kept in self._kept.values())
        return tuple(finding for finding in found if finding is not None)

    def __len__(self) -> int:
        return len(self._kept) + len(self._stored)

    def _compare_numbers(
        self,
        run: Run,
        metrics: Mapping[str, Worse],
        inventory: Inventory,
        compared: ComparedRun,
        *,
        when: Json,
        now: float,
        alike: int,
    ) -> None:
        uuids: dict[DeviceIndex, str] = {device.index: device.uuid for device in inventory.devices}
        room = MAX_READINGS
        for metric, worse in metrics.items():
            measured = announced_of(by_device(run.metrics.get(metric), run.facts), uuids.keys())
            readings = [
                MetricReading(device, uuids.get(device, ""), value) for device, value in measured if value is not None
            ]
            room -= len(readings)
            if room < 0:
                break
            if readings and (key := key_of(run.check, metric, when)) is not None:
                self._restore_baseline(key)
                known = self._kept.get(key)
                if isinstance(known, Baseline) and known.worse is not worse:
                    self._drop(key, compared)  # most nodes now announce the other direction as worse
                baseline = self._baseline(key, run, metric, worse, when)
                self._note_measured(key, run.node, compared)
                before, founder = baseline.devices, self._founders.founder(key)
                learned = baseline.take(run.node, readings, uuids.keys(), now, alike=alike, founder=founder)
                compared.note(baseline.subject, learned)
                self._devices += baseline.devices - before

    def _baseline(self, key: str, run: Run, metric: str, worse: Worse, when: Json) -> Baseline:
        kept = self._kept.get(key)
        if not isinstance(kept, Baseline):
            subject = subject_of(run.check, metric, run.params)
            kept = self._kept[key] = Baseline(
                id=key, subject=subject, check=run.check, metric=metric, worse=worse, when=when
            )
            kept.restore(None, self._stored.take_levels(key), alike=0)
            self._devices += kept.devices
        self._kept.move_to_end(key)
        return kept

    def _restore_baseline(self, key: str) -> Baseline | None:
        """Restores a stored baseline, and returns it; None if there is none."""
        if key not in self._stored.baselines:
            return None
        record, levels = self._stored.take_baseline(key)
        kept = Baseline(
            id=key,
            subject=subject_of(record.check, record.metric, record.when.get("params")),
            check=record.check,
            metric=record.metric,
            worse=record.worse,
            when=record.when,
        )
        kept.restore(record, levels, self._stored.alike_under(record.when))
        self._keep(kept, record.founder)
        return kept

    def _restore_fingerprints(self, key: str) -> Fingerprints | None:
        """Restores a stored comparison of fingerprints, and returns it; None if there is none."""
        if key not in self._stored.fingerprints:
            return None
        record, results = self._stored.take_fingerprint(key)
        kept = Fingerprints(id=key, subject=record.subject, check=record.check, name=record.name)
        kept.restore(record, results)
        self._keep(kept, record.founder)
        return kept

    def _keep(self, restored: Baseline | Fingerprints, founder: str | None) -> None:
        self._kept[restored.id] = restored
        self._devices += restored.devices
        if founder is not None:
            self._founders.restore(restored.id, founder)

    def _compare_results(
        self, run: Run, inventory: Inventory, compared: ComparedRun, *, now: float, alike: int
    ) -> None:
        if run.facts.get("backend") == "cpu":
            return  # the bits of a product depend on the processor, and no fact names it
        present: set[DeviceIndex] = {device.index for device in inventory.devices}
        for model, name, reported in islice(results_of(run), MAX_RESULTS):
            results = announced_of(reported, present)
            when = condition_of(run) | {"gpu_model": model, "software": run.facts.get("software")}
            what = f"fingerprint of {name}"
            key = key_of(run.check, what, when)
            if key is None or not results:
                continue
            kept = self._restore_fingerprints(key) or self._kept.get(key)
            if not isinstance(kept, Fingerprints):
                subject = subject_of(run.check, f"{what} by {model}", run.params)
                kept = self._kept[key] = Fingerprints(id=key, subject=subject, check=run.check, name=name)
            self._kept.move_to_end(key)
            self._note_measured(key, run.node, compared)
            before, founder = kept.devices, self._founders.founder(key)
            taken = kept.take(run.node, results, present, now, alike=alike, founder=founder)
            compared.note(kept.subject, taken)
            self._devices += kept.devices - before

    def _drop_rarest(self, compared: ComparedRun) -> None:
        """Drops the baselines that the fewest nodes have measured until the limits hold."""
        if len(self) > MAX_BASELINES:
            self.restore_some(MAX_DEVICES)
        while len(self._kept) > MAX_BASELINES or (self._devices > MAX_DEVICES and len(self._kept) > 1):
            self._drop(min(self._kept, key=lambda key: self._kept[key].nodes), compared)

    def _note_measured(self, key: str, node: str, compared: ComparedRun) -> None:
        """Notes that a node measured, and drops the oldest baseline of a node with too many unshared ones."""
        if (given_up := self._founders.note(key, node)) is not None:
            self._drop(given_up, compared)

    def _drop(self, key: str, compared: ComparedRun) -> None:
        kept = self._kept.pop(key)
        self._founders.end(key)
        self._devices -= kept.devices
        compared.hold(kept.subject, kept.release())
        compared.commands.append(EraseBaseline(key))
