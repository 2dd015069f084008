"""The check `gemm`: multiplies matrices on every device of the node at the same time, and checks the products.

The measurement is in `product`, the number formats are in `formats`, and the judgement of wrong products is in
`corruption`.
"""

import math
from collections.abc import Mapping
from functools import partial
from statistics import mean, median
from typing import Annotated, NamedTuple, Self, get_args

from pydantic import Field, JsonValue, model_validator

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Needs,
    Params,
    Reference,
    Scope,
    Severity,
    Skip,
    Worse,
    hookimpl,
)
from muster.model import Json, Metric
from muster.nouns import count
from muster_plugins.checks.gemm import corruption
from muster_plugins.checks.gemm.formats import Dtype, why_not
from muster_plugins.checks.gemm.product import EDGES, GemmJob, GemmOutcome, Shape, multiply
from muster_plugins.shared.metric_judgement import hidden_devices, judge_each_device, judge_single, missing_devices
from muster_plugins.shared.torch_device import Choice, facts, places, software
from muster_plugins.shared.torch_failures import (
    Failure,
    attempt_each,
    device_finds,
    each_number,
    failure_facts,
    failures,
)

NAME = "gemm"

DTYPES: tuple[str, ...] = get_args(Dtype)

FINDS = {
    **device_finds(NAME),
    **corruption.FINDS,
    "gemm.slow": "a device multiplies more slowly than its model should",
    "gemm.spread": "the devices of the node differ in speed by more than is usual",
    "gemm.unsupported": "the devices do not support some of the requested number formats",
}

JUDGED = tuple(f"{what}_{dtype}" for what in ("tflops", "spread") for dtype in DTYPES)
"""No published figures exist for fp32, so only an operator can set a reference for it."""

Edge = Annotated[int, Field(ge=EDGES[0], le=EDGES[-1], multiple_of=16)]
"""An edge of a matrix; tensor cores need multiples of 16."""


class GemmParams(Params):
    """Parameters that are not set get a default that suits the backend."""

    dtypes: tuple[Dtype, ...] | None = Field(
        None, min_length=1, description="Number formats; default bf16, fp8, tf32 and fp32 on GPUs, fp32 on the CPU"
    )
    size: Edge | None = Field(
        None, description="Rows and columns of all matrices; default 8192 on GPUs, 512 on the CPU"
    )
    shape: tuple[Edge, Edge, Edge] | None = Field(
        None, description="Instead of size: rows, columns and the summed dimension"
    )
    warmup_s: float | None = Field(
        None, ge=0, le=3600, description="Seconds of warm-up; default 2 on GPUs, 0.1 on the CPU"
    )
    warmup_iterations: int | None = Field(
        None,
        ge=0,
        le=100_000,
        description="Uncounted products after the warm-up; default 50 on GPUs (fp32: 5), 1 on the CPU",
    )
    iterations: int | None = Field(
        None, ge=1, le=100_000, description="Timed products; default 100 on GPUs (fp32: 10), 5 on the CPU"
    )
    seed: int = Field(1, ge=0, lt=1 << 63, description="Seed of the random numbers")
    device: Choice = Field("auto", description="cpu: use the CPU even on a node with GPUs")

    @model_validator(mode="after")
    def _one_of_size_and_shape(self) -> Self:
        if self.size is not None and self.shape is not None:
            raise ValueError("give size or shape, not both")
        return self


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Wrong products convict a device; speed and spread are judged against references."""
    corrupt = corruption.corrupt(measurement, DTYPES)
    return [
        *missing_devices(NAME, measurement),
        *hidden_devices(NAME, measurement),
        *failures(NAME, measurement),
        *_unsupported(measurement),
        *corrupt,
        *corruption.deviating(measurement, convicted={finding.device for finding in corrupt}),
        *(finding for dtype in DTYPES for finding in _speed(measurement, references, dtype)),
    ]


def _speed(measurement: Measurement, references: Mapping[str, Reference], dtype: str) -> list[Finding]:
    slow = judge_each_device(
        measurement, references, f"tflops_{dtype}", code="gemm.slow", action=Action.INSPECT_HARDWARE
    )
    return slow + judge_single(measurement, references, f"spread_{dtype}", code="gemm.spread")


def _unsupported(measurement: Measurement) -> list[Finding]:
    reasons = measurement.facts.get("unsupported")
    if not isinstance(reasons, dict) or not reasons:
        return []
    return [
        Finding(
            code="gemm.unsupported",
            summary="not measured: " + ", ".join(f"{dtype} ({reason})" for dtype, reason in reasons.items()),
            severity=Severity.SKIPPED,
            evidence=reasons,
        )
    ]


@hookimpl
def muster_checks(config: Config) -> list[Check[GemmParams]]:
    return [
        Check(
            name=NAME,
            summary="Matrix products on every device at the same time: speed, spread, and whether every element is "
            "right",
            scope=Scope.NODE,
            params=GemmParams,
            measure=measure,
            judge=judge,
            timeout_s=600.0,
            cadence_s=6 * 3600.0,
            needs=Needs.IDLE_DEVICE,
            quick={"warmup_s": 0.1, "warmup_iterations": 5, "iterations": 20},
            judged=JUDGED,
            compared={f"tflops_{dtype}": Worse.LOWER for dtype in DTYPES},
            finds=FINDS,
            cost_s=30.0,
            precedent="DCGM diag targeted_stress, SuperBench gemm-flops, mamf-finder of stas00/ml-engineering",
        )
    ]


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
