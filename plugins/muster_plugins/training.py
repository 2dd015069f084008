"""The check `training`: trains the same small network on every device; its loss must fall."""

import copy
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

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
)

if TYPE_CHECKING:
    import torch

NAME = "training"

CLASSES = 10
FEATURES = 64
LEARNING_RATE = 0.01
MOMENTUM = 0.9


class TrainingParams(Params):
    """What is left out is chosen to suit the backend."""

    steps: int | None = Field(None, ge=10, le=1_000_000, description="Steps of training; 200 on GPUs, 30 on the CPU")
    batch_size: int | None = Field(None, ge=1, description="Samples per step and device; 1024 on GPUs, 128 on the CPU")
    width: int | None = Field(None, ge=8, description="Width of the hidden layers; 4096 on GPUs, 128 on the CPU")
    seed: int = Field(1, description="Seed of the data and of the network's first weights")
    device: Choice = Field("auto", description="cpu: the CPU on purpose")


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """A loss that is no number, or that does not fall, convicts the device."""
    findings = missing_devices(NAME, measurement)
    for device, loss in device_metric(measurement, "loss_last"):
        if loss is None:
            findings.append(
                Finding(
                    code="training.loss_not_finite",
                    summary="the loss became infinite or no number at all",
                    severity=Severity.ERROR,
                    device=device,
                    action=Action.INSPECT_HARDWARE,
                )
            )
    for device, ratio in device_metric(measurement, "loss_ratio"):
        findings += judge_value(
            ratio,
            references.get("loss_ratio"),
            code="training.loss_not_falling",
            device=device,
            action=Action.INSPECT_HARDWARE,
        )
    for device, rate in device_metric(measurement, "samples_per_s"):
        findings += judge_value(rate, references.get("samples_per_s"), code="training.slow", device=device)
    return findings


@hookimpl
def muster_checks(config: Config) -> list[Check[TrainingParams]]:
    return [
        Check(
            name=NAME,
            summary="Trains a small network on every device: the loss must fall; time per step and samples per second",
            scope=Scope.NODE,
            params=TrainingParams,
            measure=measure,
            judge=judge,
            timeout_s=300.0,
            cadence_s=12 * 3600.0,
            needs=Needs.IDLE_DEVICE,
            quick={"steps": 30},
        )
    ]


class _Plan(NamedTuple):
    """The parameters with every choice made."""

    steps: int
    batch_size: int
    width: int


_CHOSEN = {"cuda": _Plan(200, 1024, 4096), "cpu": _Plan(30, 128, 128)}


class _Trained(NamedTuple):
    """What came of the training on one device; a loss is None when it is not finite."""

    loss_first: float | None
    loss_last: float | None
    step_time_s: float


def measure(params: TrainingParams, context: Context) -> Measurement:
    """First and last loss, their ratio, the median time of a step and the samples per second, for each device."""
    found = places(context, params.device)
    common = facts(context, found, params.device)
    if not found:
        return Measurement(facts=common)
    chosen = _CHOSEN[found[0].backend]
    plan = _Plan(params.steps or chosen.steps, params.batch_size or chosen.batch_size, params.width or chosen.width)
    model, samples, labels = _task(plan, params.seed)
    context.progress(f"training for {plan.steps} steps on {len(found)} device(s)")
    trained = on_each(found, lambda place: _train(place, plan.steps, model, samples, labels))
    return Measurement(
        metrics={
            "loss_first": [result.loss_first for result in trained],
            "loss_last": [result.loss_last for result in trained],
            "loss_ratio": [_ratio(result) for result in trained],
            "step_time_s": [result.step_time_s for result in trained],
            "samples_per_s": [plan.batch_size / result.step_time_s for result in trained],
        },
        facts=common | plan._asdict(),
    )


def _ratio(result: _Trained) -> float | None:
    if result.loss_first is None or result.loss_last is None:
        return None
    return result.loss_last / result.loss_first


def _task(plan: _Plan, seed: int) -> tuple["torch.nn.Module", "torch.Tensor", "torch.Tensor"]:
    """The network as every device gets it, and samples around one centre per class, with their labels."""
    import torch  # noqa: PLC0415  only child processes may load torch

    torch.manual_seed(seed)
    labels = torch.randint(CLASSES, (plan.batch_size,))
    samples = torch.randn(CLASSES, FEATURES)[labels] + 0.5 * torch.randn(plan.batch_size, FEATURES)
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, plan.width),
        torch.nn.ReLU(),
        torch.nn.Linear(plan.width, plan.width),
        torch.nn.ReLU(),
        torch.nn.Linear(plan.width, CLASSES),
    )
    return model, samples, labels


def _train(
    place: Place, steps: int, start: "torch.nn.Module", samples: "torch.Tensor", labels: "torch.Tensor"
) -> _Trained:
    import torch  # noqa: PLC0415  only child processes may load torch

    model = copy.deepcopy(start).to(place.torch_name)
    samples, labels = samples.to(place.torch_name), labels.to(place.torch_name)
    weights = list(model.parameters())
    velocities = [torch.zeros_like(weight) for weight in weights]
    losses = []

    def step() -> None:
        """Gradient descent with momentum by hand: torch.optim takes a second to import, longer than all this."""
        loss = torch.nn.functional.cross_entropy(model(samples), labels)
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, velocity, gradient in zip(weights, velocities, gradients, strict=True):
                weight.sub_(velocity.mul_(MOMENTUM).add_(gradient), alpha=LEARNING_RATE)
        losses.append(loss.detach())

    seconds = time_each(place, step, steps)
    return _Trained(_finite(losses[0].item()), _finite(losses[-1].item()), median(seconds))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
