"""Judges what wrong products say about a device. Pure.

A device convicts itself if its products are wrong, change from one to the next, or hold infinities or NaN. A device
that always makes the same mistake differs from devices of the same model, which must produce the same bits.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from pydantic import JsonValue

from muster import Action, Finding, Measurement, Severity
from muster.model import Json
from muster.nouns import count
from muster_plugins.shared.metric_judgement import device_index, device_metric

COUNTS = {
    "wrong_products": "have wrong sums",
    "changed_products": "differ in bits from the first",
    "not_finite_products": "hold infinities or NaN",
}
"""The counter for each type and device, and the text about such products."""

FINDS = {
    "gemm.corrupt": "a device gives wrong, changing or non-finite products: silent corruption",
    "gemm.deviates": "a device's products differ in bits from those of most devices of its model: silent corruption "
    "suspected",
    "gemm.disagreement": "devices of one model produce different bits, and no majority shows which are right",
}


def corrupt(measurement: Measurement, dtypes: Iterable[str]) -> list[Finding]:
    """One finding for each device with wrong products, for all types and all kinds of error together."""
    wrong: dict[int | None, Json] = defaultdict(dict)
    words: dict[int | None, list[str]] = defaultdict(list)
    for dtype in dtypes:
        for name, word in COUNTS.items():
            for device, products in device_metric(measurement, f"{name}_{dtype}"):
                if products:
                    wrong[device][f"{name}_{dtype}"] = products
                    words[device].append(f"{count(round(products), 'product')} in {dtype} {word}")
    return [
        Finding(
            code="gemm.corrupt",
            summary=", ".join(words[device]),
            severity=Severity.ERROR,
            device=device,
            action=Action.REPLACE,
            evidence=evidence,
        )
        for device, evidence in wrong.items()
    ]


def deviating(measurement: Measurement, convicted: set[int | None]) -> list[Finding]:
    """Devices whose bits differ from the majority of their model; a finding for the node if there is no majority.

    The devices in `convicted` do not count.
    """
    deviations: dict[int | None, Json] = defaultdict(dict)
    undecided: Json = {}
    for product, model, by_device in _comparable(measurement, convicted):
        (most, times), *others = Counter(by_device.values()).most_common()
        if not others:
            continue
        if 2 * times > len(by_device):
            for device, bits in by_device.items():
                if bits != most:
                    deviations[device][product] = {"bits": bits, "majority": most, "in_majority": times}
        else:
            undecided[product] = {"model": model, "bits": {str(device): bits for device, bits in by_device.items()}}
    return [_deviates(device, evidence) for device, evidence in deviations.items()] + _disagreement(undecided)


def _comparable(
    measurement: Measurement, convicted: set[int | None]
) -> list[tuple[str, str, dict[int | None, JsonValue]]]:
    """The bits of the devices, where they exist, by product and device model."""
    found: dict[tuple[str, str], dict[int | None, JsonValue]] = defaultdict(dict)
    fingerprints, indices, models = (measurement.facts.get(name) for name in ("fingerprints", "devices", "models"))
    if not (isinstance(fingerprints, dict) and isinstance(indices, list) and isinstance(models, list)):
        return []
    for product, prints in fingerprints.items():
        assert isinstance(prints, list)
        for index, model, bits in zip(indices, models, prints, strict=True):
            if bits is not None and device_index(index) not in convicted:
                found[product, str(model)][device_index(index)] = bits
    return [(product, model, by_device) for (product, model), by_device in found.items()]


def _deviates(device: int | None, evidence: Json) -> Finding:
    return Finding(
        code="gemm.deviates",
        summary=f"bits differ from most devices of its model in {', '.join(evidence)}",
        severity=Severity.ERROR,
        device=device,
        action=Action.REPLACE,
        evidence=evidence,
    )


def _disagreement(undecided: Json) -> list[Finding]:
    if not undecided:
        return []
    return [
        Finding(
            code="gemm.disagreement",
            summary=f"devices of one model produce different bits in {', '.join(undecided)}: one of them is wrong",
            severity=Severity.UNKNOWN,
            action=Action.INSPECT_HARDWARE,
            evidence=undecided,
        )
    ]
