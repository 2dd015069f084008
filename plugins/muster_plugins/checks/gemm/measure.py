"""Measures the check `gemm`: speed and wrong products of every device, for every number format."""

import math
from functools import partial
from statistics import mean, median
from typing import NamedTuple

from pydantic import JsonValue

from muster import Context, Measurement, Skip
from muster.model import Json, Metric
from muster.nouns import count
from muster_plugins.checks.gemm.check import GemmParams
from muster_plugins.checks.gemm.formats import Dtype, why_not
from muster_plugins.checks.gemm.product import GemmJob, GemmOutcome, Shape, multiply
from muster_plugins.shared.torch_device import facts, places, software
from muster_plugins.shared.torch_failures import Failure, attempt_each, each_number, failure_facts


class _GemmDefaults(NamedTuple):
    """Defaults for a backend."""

    dtypes: tuple[Dtype, ...]
    size: int
    warmup_s: float
    warmup_iterations: int
    iterations: int


_DEFAULTS = {
    "cuda": _GemmDefaults(("bf16", "fp8", "tf32", "fp32"), 8192, 2.0, 50, 100),  # times: as in stas00/ml-engineering
    "cpu": _GemmDefaults(("fp32",), 512, 0.1, 1, 5),
}

_FP32_TAKES_LONGER = 10
"""Divisor of the number of products: without tensor cores, a product takes 10 times as long or longer."""


def _job(params: GemmParams, backend: str, dtype: Dtype) -> GemmJob:
    """The parameters with a value for each option."""
    chosen = _DEFAULTS[backend]
    fewer = _FP32_TAKES_LONGER if (backend, dtype) == ("cuda", "fp32") else 1
    size = params.size or chosen.size
    warmups = params.warmup_iterations
    return GemmJob(
        dtype=dtype,
        shape=params.shape or (size, size, size),
        seed=params.seed,
        warmup_s=chosen.warmup_s if params.warmup_s is None else params.warmup_s,
        warmup_iterations=chosen.warmup_iterations // fewer if warmups is None else warmups,
        iterations=params.iterations or chosen.iterations // fewer,
    )


def measure(params: GemmParams, context: Context) -> Measurement:
    """For every format: TFLOP/s of each device, the spread between the devices, and the number of wrong products."""
    found = places(context, params.device)
    common = facts(context, found, params.device)
    if not found:
        return Measurement(facts=common)
    asked = tuple(dict.fromkeys(params.dtypes or _DEFAULTS[found[0].backend].dtypes))
    unsupported = why_not(asked, found)
    jobs = [_job(params, found[0].backend, dtype) for dtype in asked if dtype not in unsupported]
    if not jobs:
        raise Skip(f"no device here supports {', '.join(unsupported)}")
    metrics: dict[str, Metric] = {}
    fingerprints: Json = {}
    failed: list[JsonValue] = []
    for job in jobs:
        context.progress(f"multiplying {_times(job.shape)} {job.dtype} on {count(len(found), 'device')}")
        outcomes = attempt_each(found, partial(multiply, job=job))
        metrics |= _metrics(job, outcomes)
        fingerprints[f"{job.dtype} {_times(job.shape)} seed {job.seed}"] = [
            None if isinstance(outcome, Failure) else outcome.fingerprint for outcome in outcomes
        ]
        failed += failure_facts(found, outcomes)
    common |= {"unsupported": {**unsupported}, "fingerprints": fingerprints, "failed": failed}
    return Measurement(metrics=metrics, facts=common | _job_facts(jobs))


def _job_facts(jobs: list[GemmJob]) -> Json:
    """`size` is the shortest edge, because references for large products hold from a minimum size on."""
    shape = jobs[0].shape
    return {
        "dtypes": [job.dtype for job in jobs],
        "shape": [*shape],
        "size": min(shape),
        "software": software(),
    }


def _times(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _metrics(job: GemmJob, outcomes: list[GemmOutcome | Failure]) -> dict[str, Metric]:
    """One number for each device; TFLOP/s counts a multiplication with its addition as two operations."""
    tera = 2 * math.prod(job.shape) / 1e12
    each = partial(each_number, outcomes)
    speeds = each(lambda outcome: tera / median(outcome.seconds))
    metrics: dict[str, Metric] = {
        f"tflops_{job.dtype}": speeds,
        f"tflops_mean_{job.dtype}": each(lambda outcome: mean([tera / one for one in outcome.seconds])),
        f"tflops_max_{job.dtype}": each(lambda outcome: tera / min(outcome.seconds)),
        f"wrong_products_{job.dtype}": each(lambda outcome: outcome.wrong),
        f"changed_products_{job.dtype}": each(lambda outcome: outcome.changed),
        f"not_finite_products_{job.dtype}": each(lambda outcome: outcome.not_finite),
    }
    measured = [speed for speed in speeds if speed is not None]
    if len(measured) > 1:
        metrics[f"spread_{job.dtype}"] = (max(measured) - min(measured)) / max(measured)
    return metrics
