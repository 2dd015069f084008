"""The check `training_ddp`: all devices of a group train one network together, as a job with many GPUs does.

On a single node, the group consists of the node's devices. Rank 0 judges the results of the whole group, once; every
rank judges its own.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from muster import Action, Check, Config, Context, Finding, Measurement, Needs, Reference, Scope, Severity, hookimpl
from muster.model import Json
from muster_plugins.checks.training import problems
from muster_plugins.checks.training.problems import problems_found
from muster_plugins.checks.training.task import SETTINGS_NAME, RankReport, TaskParams, TrainingSettings
from muster_plugins.shared.equal_results import outliers
from muster_plugins.shared.metric_judgement import NOT_ASKED, device_index, judge_single, missing_devices

if TYPE_CHECKING:
    pass

NAME = "training_ddp"

_JUDGED_AT_RANK_0 = {
    "loss_ratio": "loss_not_falling",
    "throughput_samples_per_s": "slow",
    "throughput_spread": "uneven",
    "scaling_efficiency": "scales_badly",
}
_JUDGED_AT_EVERY_RANK = {
    "compute_lag": "slow_rank",
    "step_time_drift": "drift",
    "utilisation_percent": "underused",
}
"""The finding for each metric that is out of bounds."""

FINDS = {
    "training_ddp.devices_missing": "expected devices are missing",
    "training_ddp.not_asked": NOT_ASKED,
    "training_ddp.not_together": "ranks got different tasks, or one could not train by itself: nothing was measured",
    "training_ddp.results_differ": "a rank ended its training alone with other bits than ranks with the same device",
    "training_ddp.weights_differ": "after the training together, a rank had other weights than the others",
    "training_ddp.loss_not_finite": "the loss became infinite or NaN",
    "training_ddp.loss_not_falling": "the loss fell less than in a healthy group",
    "training_ddp.slow": "fewer samples per second than the reference for this group",
    "training_ddp.scales_badly": "together the devices are slower than the sum of their speeds alone, by more than "
    "the reference allows",
    "training_ddp.slow_rank": "a rank computes more slowly than the others, which then wait for it",
    "training_ddp.drift": "steps took longer at the end than at the beginning; judged where they took 5 s or more",
    "training_ddp.uneven": "equal trainings, one after the other, differed in speed by more than the reference allows",
    "training_ddp.underused": "the device was idle for more of the measured steps than the reference allows",
    **{f"training_ddp.{what}": meaning for what, meaning in problems.FINDS.items()},
}


class DdpParams(TaskParams):
    """The parameters of `training`, and how long to wait for the others."""

    timeout_s: float = Field(120.0, gt=0, le=3600, description="How long a rank waits for the others in one operation")


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Bits that no other rank has convict a rank; references judge losses and speeds."""
    found = missing_devices(NAME, measurement) + problems_found(NAME, measurement)
    if "rank" not in measurement.facts:
        return found
    found += _not_trained_together(measurement) + _differing(measurement)
    if measurement.facts["rank"] == 0:
        found += _judge_loss(measurement) + _judge_metrics(measurement, references, _JUDGED_AT_RANK_0, None)
    device = device_index(measurement.facts["device"])
    return found + _judge_metrics(measurement, references, _JUDGED_AT_EVERY_RANK, device)


def _judge_metrics(
    measurement: Measurement, references: Mapping[str, Reference], judged: Mapping[str, str], device: int | None
) -> list[Finding]:
    return [
        finding
        for metric, what in judged.items()
        for finding in judge_single(
            measurement, references, metric, code=f"{NAME}.{what}", device=device, action=Action.INSPECT_HARDWARE
        )
    ]


def _judge_loss(measurement: Measurement) -> list[Finding]:
    if measurement.metrics.get("loss_last", 0.0) is not None:
        return []
    return [_error("loss_not_finite", FINDS[f"{NAME}.loss_not_finite"], None, {})]


def _error(what: str, summary: str, device: int | None, evidence: Json) -> Finding:
    return Finding(
        code=f"{NAME}.{what}",
        summary=summary,
        severity=Severity.ERROR,
        device=device,
        action=Action.INSPECT_HARDWARE,
        evidence=evidence,
    )


def _not_trained_together(measurement: Measurement) -> list[Finding]:
    """If the group could not train together, every rank reports it and names the ranks that prevented it."""
    return [
        Finding(
            code="training_ddp.not_together",
            summary=f"the ranks did not train together: {_named(odd)} {reason}",
            severity=Severity.UNKNOWN,
            action=Action.CHECK_APPLICATION,
            evidence={"ranks": list(odd)},
        )
        for reason, odd in why_apart(_ranks(measurement)).items()
        if odd
    ]


def why_apart(ranks: list[RankReport]) -> dict[str, list[int]]:
    """The ranks that cannot train with the others, by reason."""
    return {
        "had a different task, because of their data, settings or software": outliers([rank.task for rank in ranks]),
        "could not train by themselves": [number for number, rank in enumerate(ranks) if rank.fingerprint is None],
    }


def _differing(measurement: Measurement) -> list[Finding]:
    """A rank whose bits differ from the majority reports itself; without a majority, every rank does."""
    rank, ranks, weights = measurement.facts["rank"], _ranks(measurement), measurement.facts.get("weights", [])
    assert isinstance(rank, int)
    assert isinstance(weights, list)
    own = ranks[rank]
    alike = [
        number
        for number, other in enumerate(ranks)
        if other.fingerprint and (other.kind, other.task) == (own.kind, own.task)
    ]
    computed = [alike[odd] for odd in outliers([ranks[number].fingerprint for number in alike])]
    found = {
        "results_differ": ("ended the training alone with other bits than ranks with the same device", computed),
        "weights_differ": ("ended the training together with other weights than the others", outliers(weights)),
    }
    return [
        _error(what, f"{_named(odd)} {text}", device_index(measurement.facts["device"]), {"ranks": list(odd)})
        for what, (text, odd) in found.items()
        if rank in odd
    ]


def _ranks(measurement: Measurement) -> list[RankReport]:
    ranks = measurement.facts["ranks"]
    assert isinstance(ranks, list)
    return [RankReport.model_validate(rank) for rank in ranks]


def _named(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) != 1 else ''} {', '.join(map(str, ranks))}"


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(SETTINGS_NAME, TrainingSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[DdpParams]]:
    return [
        Check(
            name=NAME,
            summary="Trains one network over all devices of a group: loss, equal weights, scaling, time in collectives",
            scope=Scope.GROUP,
            params=DdpParams,
            measure=partial(_measure, config.plugin(SETTINGS_NAME, TrainingSettings)),
            judge=judge,
            timeout_s=900.0,
            needs=Needs.IDLE_NODE,
            objective="throughput_samples_per_s",
            quick={"warmup": 10, "iterations": 50},
            judged=(*_JUDGED_AT_RANK_0, *_JUDGED_AT_EVERY_RANK),
            finds=FINDS,
            cost_s=20.0,
            precedent="acceptance tests that train with DistributedDataParallel; comparing the bits of ranks: muster",
        )
    ]


def _measure(settings: TrainingSettings, params: DdpParams, context: Context) -> Measurement:
    from muster_plugins.checks.training.ddp_measure import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(settings, params, context)
