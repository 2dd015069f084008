"""The check `training`: every device trains the same network on the same samples, at the same time and by itself.

The loss must fall, and devices of one model must end with the same bits, because they compute the same sums.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from muster import Action, Check, Config, Context, Finding, Measurement, Needs, Reference, Scope, Worse, hookimpl
from muster_plugins.checks.training import problems
from muster_plugins.checks.training.problems import problems_found
from muster_plugins.checks.training.task import SETTINGS_NAME, TaskParams, TrainingSettings
from muster_plugins.shared.equal_results import judge_finite, judge_results, result_finds
from muster_plugins.shared.metric_judgement import NOT_ASKED, hidden_devices, judge_each_device, missing_devices

if TYPE_CHECKING:
    pass

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
            measure=partial(_measure, config.plugin(SETTINGS_NAME, TrainingSettings)),
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


def _measure(settings: TrainingSettings, params: TaskParams, context: Context) -> Measurement:
    from muster_plugins.checks.training.measure import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(settings, params, context)
