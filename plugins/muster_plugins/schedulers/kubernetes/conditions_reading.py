"""Reads the conditions of this node for the check `node_conditions`, and judges them."""

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from muster import Context, Finding, Measurement, Reference, Severity, Skip
from muster.model import Data
from muster_plugins.schedulers.kubernetes.calls import READ_NODE
from muster_plugins.schedulers.kubernetes.node import KubernetesNode, NodeCondition
from muster_plugins.schedulers.kubernetes.node_conditions import FINDS, NAME
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings, WantedConditions
from muster_plugins.shared.listed_finding import listed_finding
from muster_plugins.shared.no_params import NoParams

_MOST_CHARACTERS = 200

_FROM_CACHE = {"resourceVersion": "0"}
"""Ten thousand agents ask once a minute. What the API server has in its cache is some seconds old at most."""


class ConditionsReading(Data):
    """The conditions of the node that the settings name; `unanswered` says why there are none."""

    wanted: WantedConditions
    conditions: tuple[NodeCondition, ...] = ()
    unanswered: str | None = None


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
