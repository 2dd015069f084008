"""Measures the check `training`: every device trains by itself, all at the same time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muster import Context, Measurement
from muster.model import Json, Metric
from muster.nouns import count
from muster_plugins.checks.training.figures import Figures, curves, loss_figures, spread, time_figures
from muster_plugins.checks.training.problems import TrainingProblem, problem_facts
from muster_plugins.checks.training.task import TaskParams, TrainingPlan, TrainingSettings, planned
from muster_plugins.shared.torch_device import facts, on_each, places

if TYPE_CHECKING:
    from muster_plugins.checks.training.data import Task
    from muster_plugins.checks.training.loop import Trained


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
