"""The check `gemm`: multiplies matrices on every device of the node at the same time, and checks the products.

The measurement is in `measure` and `product`, the number formats are in `formats`, and the judgement of
wrong products is in `corruption`.
"""

from collections.abc import Mapping
from typing import Annotated, Self, get_args

from pydantic import Field, model_validator

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
    Worse,
    hookimpl,
)
from muster_plugins.checks.gemm import corruption
from muster_plugins.checks.gemm.formats import EDGES, Dtype
from muster_plugins.shared.device_choice import Choice
from muster_plugins.shared.device_failures import device_finds, failures
from muster_plugins.shared.metric_judgement import hidden_devices, judge_each_device, judge_single, missing_devices

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
            measure=_measure,
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


def _measure(params: GemmParams, context: Context) -> Measurement:
    from muster_plugins.checks.gemm.measure import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(params, context)
