"""The check `inference`: every device generates the same tokens with a small decoder, all at the same time."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Needs,
    Reference,
    Scope,
    Worse,
    hookimpl,
)
from muster.model import Metric
from muster.nouns import count
from muster_plugins.checks.inference.plan import GenerationPlan, InferenceParams, planned
from muster_plugins.shared.equal_results import judge_finite, judge_results, result_finds
from muster_plugins.shared.metric_judgement import (
    hidden_devices,
    judge_each_device,
    missing_devices,
)
from muster_plugins.shared.torch_device import facts, places, processor, software
from muster_plugins.shared.torch_failures import (
    Failure,
    attempt_each,
    device_finds,
    each_number,
    failure_facts,
    failures,
)

if TYPE_CHECKING:
    from muster_plugins.checks.inference.generation import Generated

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
            measure=measure,
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


def measure(params: InferenceParams, context: Context) -> Measurement:
    """Tokens per second of each device, over all of its sequences together."""
    found = places(context, params.device)
    common = facts(context, found, params.device)
    if not found:
        return Measurement(facts=common)
    from muster_plugins.checks.inference.generation import generate  # noqa: PLC0415  it imports torch

    plan = planned(params, found[0].backend)
    context.progress(f"generating {plan.new_tokens} tokens {plan.repeats} times on {count(len(found), 'device')}")
    results = attempt_each(found, partial(generate, plan=plan))
    fingerprints = [None if isinstance(result, Failure) else result.fingerprint for result in results]
    common |= plan._asdict() | {
        "software": software() | ({"processor": processor()} if found[0].backend == "cpu" else {}),
        "fingerprints": {plan.computation: list(fingerprints)},
        "failed": failure_facts(found, results),
    }
    return Measurement(metrics=_metrics(plan, results), facts=common)


def _metrics(plan: GenerationPlan, results: "Sequence[Generated | Failure]") -> dict[str, Metric]:
    each = partial(each_number, [*results])
    errors: list[float | None] = each(lambda result: result.cache_error)
    return {
        "prefill_tokens_per_s": each(lambda result: plan.batch_size * plan.prompt_tokens / result.prefill_s),
        "decode_tokens_per_s": each(lambda result: plan.batch_size * plan.new_tokens / result.decode_s),
        "token_time_s": each(lambda result: result.token_s),
        "cache_error": [None if error is None or not math.isfinite(error) else error for error in errors],
        "changed_results": each(lambda result: result.changed),
    }
