"""The check `node_conditions`: problems that other programs report as conditions of this node in Kubernetes.

They are those of node-problem-detector, NVSentinel and the like, whose conditions are True while there is a problem.
The settings name the conditions that count. muster only reads them; their writers clear them.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from pydantic import ValidationError

from muster import Check, Context, Finding, Measurement, Reference, Scope, Severity, Skip
from muster.model import Data
from muster_plugins.schedulers.kubernetes.calls import READ_NODE
from muster_plugins.schedulers.kubernetes.node import KubernetesNode, NodeCondition
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings, WantedConditions
from muster_plugins.shared.listed_finding import listed_finding
from muster_plugins.shared.no_params import NoParams

NAME = "node_conditions"

FINDS = {
    "node_conditions.problem": "another program reports a problem of this node to Kubernetes",
    "node_conditions.unknown": "conditions that the settings name are missing or Unknown",
    "node_conditions.no_answer": "the node could not be read from the API server",
}

_CADENCE_S = 60.0

_MOST_CHARACTERS = 200

_FROM_CACHE = {"resourceVersion": "0"}
"""Ten thousand agents ask once a minute. What the API server has in its cache is some seconds old at most."""


class ConditionsReading(Data):
    """The conditions of the node that the settings name; `unanswered` says why there are none."""

    wanted: WantedConditions
    conditions: tuple[NodeCondition, ...] = ()
    unanswered: str | None = None


def check(settings: KubernetesSettings, node: str) -> Check[NoParams]:
    """The check of one node. It runs in the background if the settings name a condition."""
    is_wanted = bool(settings.conditions)
    return Check(
        name=NAME,
        summary="Problems that other programs, such as node-problem-detector, report as conditions in Kubernetes",
        scope=Scope.NODE,
        params=NoParams,
        measure=partial(measure, settings, node),
        judge=judge,
        timeout_s=10.0,
        cadence_s=_CADENCE_S if is_wanted else None,
        resident=is_wanted,
        finds=FINDS,
        cost_s=0.1,
        precedent="NVSentinel and Draino act on conditions of node-problem-detector",
    )


def measure(settings: KubernetesSettings, node: str, params: NoParams, context: Context) -> Measurement:
    """The conditions that the settings name. Raises Skip if they name none."""
    wanted = settings.conditions
    if not wanted:
        raise Skip("plugins.kubernetes.conditions names no condition")
    from muster_plugins.schedulers.kubernetes.api import ApiServer, ServiceAccount, Unanswered  # noqa: PLC0415 (memory that only nodes in Kubernetes should spend)

    server = ApiServer(ServiceAccount(settings.api, settings.service_account))
    try:
        answer = server.get(READ_NODE.path.format(name=node), _FROM_CACHE)
        conditions = KubernetesNode.model_validate_json(answer).status.conditions
    except ValidationError:
        reading = ConditionsReading(wanted=wanted, unanswered="an answer that is not a node")
    except (Unanswered, OSError) as error:
        reading = ConditionsReading(wanted=wanted, unanswered=str(error))
    else:
        reading = ConditionsReading(wanted=wanted, conditions=tuple(each for each in conditions if each.type in wanted))
    return Measurement(metrics={}, facts=reading.model_dump(mode="json", by_alias=True))


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """A finding for each severity that has problems. A condition that nobody has written is unknown."""
    reading = ConditionsReading.model_validate(measurement.facts)
    if reading.unanswered is not None:
        return _finding("no_answer", Severity.UNKNOWN, [reading.unanswered])
    status = {each.type: each.status for each in reading.conditions}
    unknown = [kind for kind in reading.wanted if status.get(kind) not in ("True", "False")]
    return [
        *_finding("unknown", Severity.UNKNOWN, unknown),
        *_finding("problem", Severity.ERROR, _problems(reading, Severity.ERROR)),
        *_finding("problem", Severity.WARNING, _problems(reading, Severity.WARNING)),
    ]


def _problems(reading: ConditionsReading, severity: Severity) -> Iterable[str]:
    """The problems that have this severity in the settings."""
    for condition in reading.conditions:
        if condition.status == "True" and reading.wanted[condition.type] == severity:
            message = condition.message[:_MOST_CHARACTERS]
            yield f"{condition.type} ({message})" if message else condition.type


def _finding(code: str, severity: Severity, parts: Iterable[str]) -> list[Finding]:
    return listed_finding(FINDS, f"{NAME}.{code}", severity, parts)
