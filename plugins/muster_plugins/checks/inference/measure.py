"""Measures the check `inference`: tokens per second and results of every device."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from muster import Context, Measurement
from muster.model import Metric
from muster.nouns import count
from muster_plugins.checks.inference.plan import GenerationPlan, InferenceParams, planned
from muster_plugins.shared.torch_device import facts, places, processor, software
from muster_plugins.shared.torch_failures import Failure, attempt_each, each_number, failure_facts

if TYPE_CHECKING:
    from muster_plugins.checks.inference.generation import Generated


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
