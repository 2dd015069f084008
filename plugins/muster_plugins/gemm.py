"""The check `gemm`: multiplies matrices on every device of the node at the same time, and proves the products.

Timed are products of random numbers, because a device draws less power, and so runs faster, on tidy ones. Between them
stand products whose value is known: of matrices of -1, 0 and 1, so sparse that every sum stays below 256 and is exact
in any type and any order of addition. Each column of such a product has a sum that is known beforehand, so one wrong
element anywhere shows.
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

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
    hookimpl,
    judge_value,
)
from muster_plugins.torch_device import (
    Choice,
    Place,
    device_metric,
    facts,
    median,
    missing_devices,
    on_each,
    places,
    time_each,
    warm_up,
)

if TYPE_CHECKING:
    import torch

NAME = "gemm"


class GemmParams(Params):
    """What is left out is chosen to suit the backend."""

    size: int | None = Field(None, ge=64, le=65536, description="Rows and columns; 8192 on GPUs, 512 on the CPU")
    iterations: int | None = Field(None, ge=1, le=100_000, description="Timed products; 100 on GPUs, 5 on the CPU")
    warmup_s: float | None = Field(None, ge=0, description="Seconds of warm-up; 2 on GPUs, 0.1 on the CPU")
    dtype: Literal["auto", "fp32", "bf16", "fp16"] = Field("auto", description="auto: bf16 on GPUs, fp32 on the CPU")
    seed: int = Field(1, description="Seed of the random numbers")
    device: Choice = Field("auto", description="cpu: the CPU on purpose")


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Wrong products convict a device; speed is judged against references."""
    findings = missing_devices(NAME, measurement)
    for device, wrong in device_metric(measurement, "wrong_products"):
        if wrong:
            findings.append(
                Finding(
                    code="gemm.corrupt",
                    summary=f"{wrong:.0f} of {measurement.facts['iterations']} proof products are wrong",
                    severity=Severity.ERROR,
                    device=device,
                    action=Action.REPLACE,
                    evidence={"wrong_products": wrong},
                )
            )
    for device, tflops in device_metric(measurement, "tflops"):
        findings += judge_value(
            tflops, references.get("tflops"), code="gemm.slow", device=device, action=Action.INSPECT_HARDWARE
        )
    spread = measurement.metrics.get("spread")
    if isinstance(spread, float):
        findings += judge_value(spread, references.get("spread"), code="gemm.spread")
    return findings


@hookimpl
def muster_checks(config: Config) -> list[Check[GemmParams]]:
    return [
        Check(
            name=NAME,
            summary="Matrix products on every device at the same time: speed, spread, and that every element is right",
            scope=Scope.NODE,
            params=GemmParams,
            measure=measure,
            judge=judge,
            timeout_s=300.0,
            cadence_s=6 * 3600.0,
            needs=Needs.IDLE_DEVICE,
            quick={"iterations": 5, "warmup_s": 0.1},
        )
    ]


class _Plan(NamedTuple):
    """The parameters with every choice made."""

    size: int
    iterations: int
    warmup_s: float
    dtype: str
    seed: int


_CHOSEN = {"cuda": (8192, 100, 2.0, "bf16"), "cpu": (512, 5, 0.1, "fp32")}


def _plan(params: GemmParams, backend: str) -> _Plan:
    size, iterations, warmup_s, dtype = _CHOSEN[backend]
    return _Plan(
        size=params.size or size,
        iterations=params.iterations or iterations,
        warmup_s=warmup_s if params.warmup_s is None else params.warmup_s,
        dtype=dtype if params.dtype == "auto" else params.dtype,
        seed=params.seed,
    )


def measure(params: GemmParams, context: Context) -> Measurement:
    """TFLOP/s of each device as the median of its products, the spread among them, and how many proofs failed."""
    found = places(context, params.device)
    common = facts(context, found, params.device)
    if not found:
        return Measurement(facts=common)
    plan = _plan(params, found[0].backend)
    context.progress(f"multiplying {plan.size}x{plan.size} {plan.dtype} on {len(found)} device(s)")
    measured = on_each(found, lambda place: _multiply(place, plan))
    tflops = [2 * plan.size**3 / seconds / 1e12 for seconds, _ in measured]
    return Measurement(
        metrics={
            "tflops": list(tflops),
            "spread": (max(tflops) - min(tflops)) / max(tflops),
            "wrong_products": [float(wrong) for _, wrong in measured],
        },
        facts=common | {"dtype": plan.dtype, "size": plan.size, "iterations": plan.iterations},
    )


def _multiply(place: Place, plan: _Plan) -> tuple[float, int]:
    """Median seconds of a product, and the number of proof products that were wrong."""
    import torch  # noqa: PLC0415  only child processes may load torch

    # Products that are split along the summed dimension would be added up in the narrow type, which rounds.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[plan.dtype]
    generator = torch.Generator(place.torch_name).manual_seed(plan.seed)
    shape = (plan.size, plan.size)
    left, right = (
        torch.randn(shape, generator=generator, device=place.torch_name, dtype=torch.float32).to(dtype)
        for _ in range(2)
    )
    product = torch.empty_like(left)
    wrong = torch.zeros((), dtype=torch.int64, device=place.torch_name)
    is_wrong = _proof(plan.size, dtype, generator, out=torch.empty_like(left))

    def multiply() -> None:
        torch.matmul(left, right, out=product)

    def prove() -> None:
        wrong.add_(is_wrong())

    warm_up(place, multiply, plan.warmup_s)
    seconds = time_each(place, multiply, plan.iterations, between=prove)
    return median(seconds), int(wrong.item())


def _proof(
    size: int, dtype: "torch.dtype", generator: "torch.Generator", out: "torch.Tensor"
) -> Callable[[], "torch.Tensor"]:
    """A product with known column sums, to be repeated: it gives a tensor that is true when the product is wrong."""
    import torch  # noqa: PLC0415  only child processes may load torch

    density = min(0.5, 32 / math.sqrt(size))  # keeps the sums within eight standard deviations of 256

    def ternary() -> torch.Tensor:
        dice = torch.rand((size, size), generator=generator, device=out.device)
        return ((dice < density / 2).to(dtype)).sub_((dice > 1 - density / 2).to(dtype))

    left, right = ternary(), ternary()
    known = (left.sum(0, dtype=torch.float64)[None, :] @ right.double())[0]

    def is_wrong() -> torch.Tensor:
        torch.matmul(left, right, out=out)
        return (out.sum(0, dtype=torch.float64) != known).any()

    return is_wrong
