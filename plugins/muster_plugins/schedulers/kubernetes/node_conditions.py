"""The check `node_conditions`: problems that other programs report as conditions of this node in Kubernetes.

They are those of node-problem-detector, NVSentinel and the like, whose conditions are True while there is a problem.
The settings name the conditions that count. muster only reads them; their writers clear them.
"""

from collections.abc import Mapping
from functools import partial

from muster import Check, Context, Finding, Measurement, Reference, Scope
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings
from muster_plugins.shared.no_params import NoParams

NAME = "node_conditions"

FINDS = {
    "node_conditions.problem": "another program reports a problem of this node to Kubernetes",
    "node_conditions.unknown": "conditions that the settings name are missing or Unknown",
    "node_conditions.no_answer": "the node could not be read from the API server",
}

_CADENCE_S = 60.0


def check(settings: KubernetesSettings, node: str) -> Check[NoParams]:
    """The check of one node. It runs in the background if the settings name a condition."""
    is_wanted = bool(settings.conditions)
    return Check(
        name=NAME,
        summary="Problems that other programs, such as node-problem-detector, report as conditions in Kubernetes",
        scope=Scope.NODE,
        params=NoParams,
        measure=partial(_measure, settings, node),
        judge=_judge,
        timeout_s=10.0,
        cadence_s=_CADENCE_S if is_wanted else None,
        resident=is_wanted,
        finds=FINDS,
        cost_s=0.1,
        precedent="NVSentinel and Draino act on conditions of node-problem-detector",
    )


def _measure(settings: KubernetesSettings, node: str, params: NoParams, context: Context) -> Measurement:
    from muster_plugins.schedulers.kubernetes.conditions_reading import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(settings, node, params, context)


def _judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    from muster_plugins.schedulers.kubernetes.conditions_reading import judge  # noqa: PLC0415 (memory that only a run should spend)

    return judge(measurement, references)
