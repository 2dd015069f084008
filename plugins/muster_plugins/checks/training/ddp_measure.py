"""Measures the check `training_ddp`: one rank of the group, alone and together with the others."""

from statistics import median
from typing import TYPE_CHECKING

from muster import Context, Measurement
from muster.model import Json, Metric
from muster_plugins.checks.training.ddp import DdpParams, why_apart
from muster_plugins.checks.training.figures import curves, loss_figures, spread, time_figures
from muster_plugins.checks.training.problems import TrainingProblem, problem_facts
from muster_plugins.checks.training.task import RankReport, TrainingPlan, TrainingSettings, planned
from muster_plugins.shared.equal_results import outliers
from muster_plugins.shared.torch_device import Place, facts, place_of_rank, places_in_group, working_on
from muster_plugins.shared.torch_group import RankGroup, joined

if TYPE_CHECKING:
    from muster_plugins.checks.training.data import Task
    from muster_plugins.checks.training.group import GroupTraining


def measure(settings: TrainingSettings, params: DdpParams, context: Context) -> Measurement:
    """Times as the rank saw them, and the losses and samples per second of the whole group."""
    from muster_plugins.checks.training import data, loop  # noqa: PLC0415  slow: torch
    from muster_plugins.checks.training import group as training_group  # noqa: F401, PLC0415  slow: torch

    found = places_in_group(context, params.device)
    devices = facts(context, found, params.device)
    if devices["missing"]:  # otherwise the group would measure the wrong hardware
        return Measurement(facts=devices)
    plan = planned(params, found[0].backend)
    common = devices | plan.facts() | {"software": loop.software(plan.backend)}
    loop.make_repeatable(plan.backend)
    try:
        task = data.prepared(plan, settings.data_dir)
    except TrainingProblem as problem:
        return Measurement(facts=common | problem_facts(problem))
    meeting = context.rendezvous()
    place = place_of_rank(found, meeting.local_rank)
    with working_on(place), joined(context, meeting, place, params.timeout_s) as group:
        measured = _measure_in_group(context, group, place, task)
    return measured.model_copy(update={"facts": common | measured.facts})


def _measure_in_group(context: Context, group: RankGroup, place: Place, task: "Task") -> Measurement:
    from muster_plugins.checks.training.group import train_alone, train_together  # noqa: PLC0415  it imports torch
    from muster_plugins.checks.training.utilisation import busy_percent, sampled  # noqa: PLC0415  it loads NVML

    steps = f"training {task.plan.model} for {task.plan.steps} steps"
    context.progress(f"{steps}, each of {len(group.nodes)} ranks alone")
    alone, ranks = train_alone(place, task, group)
    rank_facts = _facts(task.plan, group, place, ranks)
    if isinstance(alone, TrainingProblem):
        rank_facts |= problem_facts(alone)
    if any(why_apart(ranks).values()):
        return Measurement(facts=rank_facts)
    context.progress(f"{steps}, together with {group.backend}")
    with sampled([place], context.devices) as (samples,):
        together = train_together(place, task, group)
    rank_facts["weights"] = list(next((each for each in together if outliers(each.weights)), together[0]).weights)
    if group.rank == 0:  # the losses are those of the group, so one rank reports them
        rank_facts["curves"] = curves([together[0].losses], [_seconds(together)])
    metrics = _metrics(task.plan, group.rank, ranks, together)
    metrics["utilisation_percent"] = busy_percent(samples, [each.own.measured for each in together])
    return Measurement(metrics=metrics, facts=rank_facts)


def _facts(plan: TrainingPlan, group: RankGroup, place: Place, ranks: list[RankReport]) -> Json:
    return group.facts(place) | {
        "global_batch_size": plan.batch_size * len(group.nodes),
        "ranks": [report.model_dump() for report in ranks],
    }


def _seconds(together: list["GroupTraining"]) -> list[float]:
    """The time of each measured step of this rank, in all trainings."""
    return [seconds for each in together for seconds in each.own.seconds]


def _metrics(
    plan: TrainingPlan, rank: int, ranks: list[RankReport], together: list["GroupTraining"]
) -> dict[str, Metric]:
    """Samples per second of the group: the samples of all ranks, divided by the time of the slowest rank."""
    seconds, totals = _seconds(together), [each.total_s for each in together]
    samples = plan.samples * len(ranks) * len(together)
    figures = loss_figures(together[0].losses) | time_figures(seconds, sum(totals), samples)
    alone_s = ranks[rank].step_time_s
    alike = [report.step_time_s for report in ranks if report.kind == ranks[rank].kind]
    collective_s = max(0.0, median(seconds) - alone_s)
    return {
        **figures,
        "alone_step_time_s": alone_s,
        "compute_lag": alone_s / median(alike) - 1,
        "collective_time_s": collective_s,
        "collective_share": collective_s / median(seconds),
        "throughput_spread": spread(totals),
        "scaling_efficiency": samples / sum(totals) / sum(report.samples_per_s for report in ranks),
    }
