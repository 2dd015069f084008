"""All baselines of the fleet: which runs are compared with each other, and the findings of the comparisons.

The idea: two runs are comparable if they have the same check, parameters, machine type, and facts of `COMPARED_BY`.
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

import hashlib
import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from muster.check import Worse
from muster.errors import Refused, unknown
from muster.model import MOST_DEVICES, Finding, Inventory, Json, Run, Verdict
from muster_coordinator.model.baselines import BaselineRecord, BaselineView, FleetFinding, LevelsRecord
from muster_coordinator.model.events import EraseBaseline, FleetCommand, SaveBaseline, SaveLevels
from muster_coordinator.normal.baseline import Baseline, Learned
from muster_coordinator.normal.fingerprints import Fingerprints
from muster_coordinator.normal.founders import Founders
from muster_coordinator.normal.readings import DeviceIndex, MetricReading, by_device, device_indices

COMPARED_BY = (
    "backend",
    "batch_size_per_gpu",
    "gpu_model",
    "iterations",
    "peer_access",
    "shape",
    "simulated",
    "size_bytes",
    "steps",
)
"""Facts that make runs comparable: the measured hardware, and the amount of work, if the parameters do not give it."""

COMPARED = ("baseline.outlier", "baseline.drift", "baseline.fingerprint")
"""Codes of the findings of comparisons against a node."""

MAX_BASELINES = 1_000
MAX_DEVICES = 2_000_000
"""Maximum number of counted devices over all baselines. A device counts in every baseline that it is in."""

MAX_CONDITION_CHARS = 4_096
"""Maximum size of a run's conditions. A run with longer ones is not compared, so no node can make the coordinator keep
them.
"""

MAX_RESULTS = 64
"""Maximum number of fingerprints of one run that are compared; a matrix product has one for each number format."""

MAX_READINGS = 2_000
"""Maximum number of values of one run that are compared: about ten metrics of 128 devices. Further metrics are left
out.
"""

MAX_RESULT_CHARS = 256
"""Maximum length of a fingerprint. A longer result is not compared, so no node can make the coordinator keep it."""


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


NOTHING = ComparedRun()
"""The result of a run that is not compared. Most are not."""


class Baselines:
    """All baselines and fingerprints; the last measured ones are at the end."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Baseline | Fingerprints] = OrderedDict()
        self._founders = Founders()
        self._devices = 0
        self._stored: dict[str, tuple[BaselineRecord | None, list[LevelsRecord]]] = {}

    def restore(self, baselines: Iterable[BaselineRecord], levels: Iterable[LevelsRecord]) -> None:
        """Keeps the stored records until their baseline is measured again."""
        by_baseline: dict[str, list[LevelsRecord]] = defaultdict(list)
        for record in levels:
            if record.levels:  # only of nodes that have not left
                by_baseline[record.baseline].append(record)
        records = {record.id: record for record in baselines}
        self._stored = {key: (records.get(key), by_baseline[key]) for key in {*records, *by_baseline}}

    def observe(
        self, run: Run, metrics: Mapping[str, Worse], inventory: Inventory, now: float, *, alike: int = 1
    ) -> ComparedRun:
        """Adds a run and compares it by `metrics`. `alike` is the number of nodes with the machine type of its node."""
        if not metrics and "fingerprints" not in run.facts:
            return NOTHING
        if run.group is not None or run.verdict not in (Verdict.PASS, Verdict.WARN):
            return NOTHING
        if len(json.dumps([_condition(run), run.facts.get("software")])) > MAX_CONDITION_CHARS:
            return NOTHING  # these are part of every key below, and are checked once here instead of for each metric
        compared = ComparedRun()
        self._compare_numbers(run, metrics, inventory, compared, now=now, alike=alike)
        self._compare_results(run, inventory, compared, now=now, alike=alike)
        self._drop_rarest(compared)
        return compared

    def reset(self, id: str, now: float) -> ComparedRun:
        """Resets a baseline to the present values. Raises Refused if there is no baseline with this id."""
        known = {kept.id: kept for kept in self._kept.values() if isinstance(kept, Baseline)}
        if id not in known:
            raise Refused(unknown("baseline", id, known))
        held, record = known[id].reset(now)
        compared = ComparedRun(commands=[EraseBaseline(id), SaveBaseline(record)])
        compared.hold(known[id].subject, held)
        return compared

    def forget(self, node: str) -> list[FleetCommand]:
        """Forgets a node that has left. Its devices no longer count, and empty levels are stored for it."""
        had = {key for key, (_, levels) in self._stored.items() if any(record.node == node for record in levels)}
        for key in had:
            record, levels = self._stored[key]
            self._stored[key] = record, [record for record in levels if record.node != node]
        for key, kept in self._kept.items():
            before = kept.devices
            kept.forget(node)
            self._devices -= before - kept.devices
            if isinstance(kept, Baseline) and kept.devices < before:
                had.add(key)
        return [SaveLevels(LevelsRecord(baseline=key, node=node, levels={})) for key in sorted(had)]

    def views(self) -> list[BaselineView]:
        """Every baseline as the API serves it, by id."""
        views = (kept.view() for kept in self._kept.values() if isinstance(kept, Baseline))
        return sorted(views, key=lambda view: view.id)

    def findings(self) -> tuple[FleetFinding, ...]:
        """Findings about many nodes at once."""
        found = (kept.fleet_finding() for kept in self._kept.values())
        return tuple(finding for finding in found if finding is not None)

    def __len__(self) -> int:
        return len(self._kept)

    def _compare_numbers(
        self,
        run: Run,
        metrics: Mapping[str, Worse],
        inventory: Inventory,
        compared: ComparedRun,
        *,
        now: float,
        alike: int,
    ) -> None:
        uuids: dict[DeviceIndex, str] = {device.index: device.uuid for device in inventory.devices}
        when = _condition(run) | {"machine_type": inventory.machine_type}
        room = MAX_READINGS
        for metric, worse in metrics.items():
            measured = _announced(by_device(run.metrics.get(metric), run.facts), uuids.keys())
            readings = [
                MetricReading(device, uuids.get(device, ""), value) for device, value in measured if value is not None
            ]
            room -= len(readings)
            if room < 0:
                break
            if readings and (key := _key(run.check, metric, when)) is not None:
                known = self._kept.get(key)
                if isinstance(known, Baseline) and known.worse is not worse:
                    self._drop(key, compared)  # most nodes now announce the other direction as worse
                baseline = self._baseline(key, run, metric, worse, when)
                self._note_measured(key, run.node, compared)
                before = baseline.devices
                self._note(baseline, baseline.take(run.node, readings, uuids.keys(), now, alike=alike), compared)
                self._devices += baseline.devices - before

    def _note(self, baseline: Baseline, learned: Learned, compared: ComparedRun) -> None:
        compared.hold(baseline.subject, learned.held)
        if learned.anchor is not None:
            compared.commands.append(SaveBaseline(learned.anchor))
        if learned.levels is not None:
            compared.commands.append(SaveLevels(learned.levels))

    def _baseline(self, key: str, run: Run, metric: str, worse: Worse, when: Json) -> Baseline:
        kept = self._kept.get(key)
        if not isinstance(kept, Baseline):
            kept = self._kept[key] = Baseline(
                id=key, subject=_subject(run, metric), check=run.check, metric=metric, worse=worse, when=when
            )
            record, levels = self._stored.pop(key, (None, []))
            kept.restore(record, levels)
            self._devices += kept.devices
        self._kept.move_to_end(key)
        return kept

    def _compare_results(
        self, run: Run, inventory: Inventory, compared: ComparedRun, *, now: float, alike: int
    ) -> None:
        if run.facts.get("backend") == "cpu":
            return  # the bits of a product depend on the processor, and no fact names it
        present: set[DeviceIndex] = {device.index for device in inventory.devices}
        for model, name, reported in islice(_results(run), MAX_RESULTS):
            results = _announced(reported, present)
            when = _condition(run) | {"gpu_model": model, "software": run.facts.get("software")}
            what = f"fingerprint of {name}"
            key = _key(run.check, what, when)
            if key is None or not results:
                continue
            kept = self._kept.get(key)
            if not isinstance(kept, Fingerprints):
                kept = self._kept[key] = Fingerprints(key, _subject(run, f"{what} by {model}"), run.check, name)
            self._kept.move_to_end(key)
            self._note_measured(key, run.node, compared)
            before = kept.devices
            compared.hold(kept.subject, kept.take(run.node, results, present, now, alike=alike))
            self._devices += kept.devices - before

    def _drop_rarest(self, compared: ComparedRun) -> None:
        """Drops the baselines that the fewest nodes have measured until the limits hold."""
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


def _condition(run: Run) -> Json:
    """The parameters and facts that comparable runs share."""
    return {"params": run.params, **{name: run.facts[name] for name in COMPARED_BY if name in run.facts}}


def _subject(run: Run, what: str) -> str:
    return f"{run.check} {what} {json.dumps(run.params, sort_keys=True)}"


MeasuredT = TypeVar("MeasuredT")


def _announced(
    measured: Sequence[tuple[DeviceIndex, MeasuredT]], present: Set[DeviceIndex]
) -> list[tuple[DeviceIndex, MeasuredT]]:
    """The values of devices that the node has announced; of all devices if it announced none."""
    return [
        (device, value)
        for device, value in measured[:MOST_DEVICES]
        if not present or device is None or device in present
    ]


def _key(check: str, what: str, when: Json) -> str | None:
    """The id of a comparison, the same after a restart; None if its condition is too long."""
    text = json.dumps([check, what, when], sort_keys=True)
    return None if len(text) > MAX_CONDITION_CHARS else hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _results(run: Run) -> Iterator[tuple[str, str, list[tuple[DeviceIndex, str]]]]:
    """The result of each device by its model and the name of the computation. Other values are left out."""
    fingerprints, models = run.facts.get("fingerprints"), run.facts.get("models")
    if not isinstance(fingerprints, dict):
        return
    for name, results in fingerprints.items():
        if not isinstance(results, list):
            continue
        kinds = models if isinstance(models, list) and len(models) == len(results) else [""] * len(results)
        by_model: dict[str, list[tuple[DeviceIndex, str]]] = defaultdict(list)
        for device, model, result in zip(device_indices(run.facts, len(results)), kinds, results, strict=True):
            if isinstance(result, str) and len(result) <= MAX_RESULT_CHARS:
                by_model[str(model)].append((device, result))
        for model, found in by_model.items():
            yield model, name, found
