"""The check `inference`: every device generates the same tokens with a small decoder, all at the same time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from muster import Action, Check, Config, Context, Finding, Measurement, Needs, Reference, Scope, Worse, hookimpl
from muster_plugins.checks.inference.plan import InferenceParams
from muster_plugins.shared.device_failures import device_finds, failures
from muster_plugins.shared.equal_results import judge_finite, judge_results, result_finds
from muster_plugins.shared.metric_judgement import hidden_devices, judge_each_device, missing_devices

if TYPE_CHECKING:
    pass

NAME = "inference"

_SPEEDS = ("prefill_tokens_per_s", "decode_tokens_per_s")

FINDS = {
    **device_finds(NAME),
    **result_finds(NAME, "generation"),
    "inference.not_finite": "the logits became infinite or NaN",
    "inference.cache_wrong": "logits with the cache differ from those without it by more than rounding explains",
    "inference.slow": "fewer tokens per second than the reference for this device",
}


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Wrong logits and odd bits convict a device; references judge its speed."""
    found = missing_devices(NAME, measurement) + hidden_devices(NAME, measurement) + failures(NAME, measurement)
    found += judge_results(NAME, "generation", measurement)
    found += judge_finite(
        measurement,
        "cache_error",
        code="inference.not_finite",
        meaning=FINDS["inference.not_finite"],
        action=Action.REPLACE,
    )
    found += judge_each_device(
        measurement, references, "cache_error", code="inference.cache_wrong", action=Action.REPLACE
    )
    for speed in _SPEEDS:
        found += judge_each_device(
            measurement, references, speed, code="inference.slow", action=Action.INSPECT_HARDWARE
        )
    return found


@hookimpl
def muster_checks(config: Config) -> list[Check[InferenceParams]]:
    return [
        Check(
            name=NAME,
            summary="Generates tokens on every device with a small decoder and its cache: speed of prefill and of "
            "decoding, and whether the result is right",
            scope=Scope.NODE,
            params=InferenceParams,
            measure=_measure,
            judge=judge,
            timeout_s=300.0,
            needs=Needs.IDLE_DEVICE,
            quick={"repeats": 2},
            judged=("cache_error", *_SPEEDS),
            compared=dict.fromkeys(_SPEEDS, Worse.LOWER),
            finds=FINDS,
            cost_s=15.0,
            precedent="SuperBench gpt and llama inference, MLPerf Inference; comparing bits and the cache: muster",
        )
    ]


def _measure(params: InferenceParams, context: Context) -> Measurement:
    from muster_plugins.checks.inference.measure import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(params, context)
