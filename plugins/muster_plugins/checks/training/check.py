"""The check `training`: every device trains the same network on the same samples, at the same time and by itself.

The loss must fall, and devices of one model must end with the same bits, because they compute the same sums.
"""

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
from muster.model import Json, Metric
from muster.nouns import count
from muster_plugins.checks.training import problems
from muster_plugins.checks.training.figures import Figures, curves, loss_figures, spread, time_figures
from muster_plugins.checks.training.problems import TrainingProblem, problem_facts, problems_found
from muster_plugins.checks.training.task import SETTINGS_NAME, TaskParams, TrainingPlan, TrainingSettings, planned
from muster_plugins.shared.equal_results import judge_finite, judge_results, result_finds
from muster_plugins.shared.metric_judgement import (
    NOT_ASKED,
    hidden_devices,
    judge_each_device,
    missing_devices,
)
from muster_plugins.shared.torch_device import facts, on_each, places

if TYPE_CHECKING:
    from muster_plugins.checks.training.data import Task
    from muster_plugins.checks.training.loop import Trained

NAME = "training"

_JUDGED = {
    "loss_ratio": "loss_not_falling",
    "throughput_samples_per_s": "slow",
    "throughput_spread": "uneven",
    "step_time_drift": "drift",
    "utilisation_percent": "underused",
}
"""The finding for each metric that is out of bounds."""

FINDS = {
    "training.devices_missing": "expected devices are missing",
    "training.not_asked": NOT_ASKED,
    "training.devices_hidden": "devices that CUDA_VISIBLE_DEVICES hides were not measured",
    "training.loss_not_finite": "the loss became infinite or NaN",
    "training.loss_not_falling": "the loss fell less than on a healthy device",
    **result_finds(NAME, "training"),
    "training.slow": "fewer samples per second than the reference for this device",
    "training.drift": "steps took longer at the end than at the beginning; judged where they took 5 s or more",
    "training.uneven": "equal trainings, one after the other, differed in speed by more than the reference allows",
    "training.underused": "the device was idle for more of the measured steps than the reference allows",
    **{f"training.{what}": meaning for what, meaning in problems.FINDS.items()},
}


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """A loss that is NaN or does not fall convicts a device; so do bits that differ from its like, or from its own."""
    findings = missing_devices(NAME, measurement) + hidden_devices(NAME, measurement)
    findings += problems_found(NAME, measurement)
    findings += judge_finite(
        measurement,
        "loss_last",
        code="training.loss_not_finite",
        meaning=FINDS["training.loss_not_finite"],
        action=Action.INSPECT_HARDWARE,
    )
    findings += judge_results(NAME, "training", measurement)
    for metric, what in _JUDGED.items():
        findings += judge_each_device(
            measurement, references, metric, code=f"{NAME}.{what}", action=Action.INSPECT_HARDWARE
        )
    return findings


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(SETTINGS_NAME, TrainingSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[TaskParams]]:
    return [
        Check(
            name=NAME,
            summary="Trains one network on every device: the loss must fall, and all must end with the same bits; "
            "measures speed",
            scope=Scope.NODE,
            params=TaskParams,
            measure=partial(measure, config.plugin(SETTINGS_NAME, TrainingSettings)),
            judge=judge,
            timeout_s=600.0,
            cadence_s=12 * 3600.0,
            needs=Needs.IDLE_DEVICE,
            quick={"warmup": 10, "iterations": 50},
            judged=tuple(_JUDGED),
            compared={"throughput_samples_per_s": Worse.LOWER},
            finds=FINDS,
            cost_s=10.0,
            precedent="acceptance tests that train an MLP, ResNet or Transformer; the fingerprint: muster",
        )
    ]


def measure(settings: TrainingSettings, params: TaskParams, context: Context) -> Measurement:
    """Losses, times of steps and samples per second, for each device."""
    from muster_plugins.checks.training import data, loop  # noqa: PLC0415  they import torch
    from muster_plugins.checks.training.utilisation import busy_percent, sampled  # noqa: PLC0415  it loads NVML

    found = places(context, params.device)
    common = facts(context, found, params.device)
    if not found:
        return Measurement(facts=common)
    plan = planned(params, found[0].backend)
    common |= plan.facts() | {"software": loop.software(plan.backend)}
    loop.make_repeatable(plan.backend)
    try:
        task = data.prepared(plan, settings.data_dir)
    except TrainingProblem as problem:
        return Measurement(facts=common | problem_facts(problem))
    context.progress(f"{_work(plan)} on {count(len(found), 'device')}")
    with sampled(found, context.devices) as samples:
        trained = on_each(found, lambda place: loop.train_repeatedly(place, task))
    figures = [
        {}
        if isinstance(result, TrainingProblem)
        else _figures(plan, result) | {"utilisation_percent": busy_percent(taken, [each.measured for each in result])}
        for result, taken in zip(trained, samples, strict=True)
    ]
    return Measurement(metrics=_metrics(figures), facts=common | _facts(task, trained))


def _work(plan: TrainingPlan) -> str:
    once = f"training {plan.model} for {plan.steps} steps"
    return once if plan.repeats == 1 else f"{once}, {plan.repeats} times"


def _metrics(figures: Sequence[Figures]) -> dict[str, Metric]:
    """Metrics in device order, with None for a device that could not train."""
    names = next((list(each) for each in figures if each), [])
    return {name: [each.get(name) for each in figures] for name in names}


def _figures(plan: TrainingPlan, trained: Sequence["Trained"]) -> Figures:
    """The figures of one device, over all its trainings."""
    seconds, totals = _seconds(trained), [each.total_s for each in trained]
    figures = loss_figures(trained[0].losses)
    figures |= time_figures(seconds, sum(totals), plan.samples * len(trained))
    if len(trained) > 1:
        figures["throughput_spread"] = spread(totals)
        figures["changed_results"] = float(sum(each.checksum != trained[0].checksum for each in trained))
    return figures


def _seconds(trained: Sequence["Trained"]) -> list[float]:
    """The time of each measured step, in all trainings."""
    return [seconds for each in trained for seconds in each.seconds]


def _facts(task: "Task", trained: Sequence["Sequence[Trained] | TrainingProblem"]) -> Json:
    good = [result for result in trained if not isinstance(result, TrainingProblem)]
    fingerprints = [None if isinstance(result, TrainingProblem) else result[0].checksum for result in trained]
    return {
        "fingerprints": {f"task {task.checksum}": list(fingerprints)},
        "curves": curves([result[0].losses for result in good], [_seconds(result) for result in good]),
        **problem_facts(*(result for result in trained if isinstance(result, TrainingProblem))),
    }
