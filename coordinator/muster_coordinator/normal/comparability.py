"""Which runs can be compared with each other: their conditions, and the keys and subjects that follow from them.

Example: a run of gemm with shape 8192 on a node of type a3 has the condition `{"params": ..., "shape": 8192}`. The key
of its baseline for `tflops` is a hash of the check, the metric, and the condition with the kind of hardware. Each
function takes time in proportion to the size of the parameters and facts.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from typing import TypeVar

from pydantic import JsonValue

from muster.model import MOST_DEVICES, Json, Run
from muster_coordinator.model.hardware_kind import HardwareKind
from muster_coordinator.normal.readings import DeviceIndex, device_indices

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

MAX_CONDITION_CHARS = 4_096
"""Maximum size of a run's conditions. A run with longer ones is not compared, so no node can make the coordinator keep
them.
"""

MAX_RESULT_CHARS = 256
"""Maximum length of a fingerprint. A longer result is not compared, so no node can make the coordinator keep it."""

MeasuredT = TypeVar("MeasuredT")


def condition_of(run: Run) -> Json:
    """The parameters and facts that comparable runs share."""
    return {"params": run.params, **{name: run.facts[name] for name in COMPARED_BY if name in run.facts}}


def hardware_condition(kind: HardwareKind) -> Json:
    """The kind of hardware as a part of a condition."""
    return {"machine_type": kind.machine_type, "gpu_models": [*kind.gpu_models]}


def hardware_in(when: Json) -> HardwareKind:
    """The kind of hardware in a condition."""
    machine_type, models = when.get("machine_type"), when.get("gpu_models")
    return HardwareKind(
        machine_type if isinstance(machine_type, str) else None,
        tuple(map(str, models)) if isinstance(models, list) else (),
    )


def subject_of(check: str, what: str, params: JsonValue) -> str:
    """What is compared, for the evidence about nodes: it stays the same when a node gets other hardware or software."""
    return f"{check} {what} {json.dumps(params, sort_keys=True)}"


def announced_of(
    measured: Sequence[tuple[DeviceIndex, MeasuredT]], present: Set[DeviceIndex]
) -> list[tuple[DeviceIndex, MeasuredT]]:
    """The values of devices that the node has announced; of all devices if it announced none."""
    return [
        (device, value)
        for device, value in measured[:MOST_DEVICES]
        if not present or device is None or device in present
    ]


def key_of(check: str, what: str, when: Json) -> str | None:
    """The id of a comparison, the same after a restart; None if its condition is too long."""
    text = json.dumps([check, what, when], sort_keys=True)
    return None if len(text) > MAX_CONDITION_CHARS else hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def results_of(run: Run) -> Iterator[tuple[str, str, list[tuple[DeviceIndex, str]]]]:
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
