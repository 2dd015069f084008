"""The permissions that muster needs in a cluster, as manifests: exactly those of its calls."""

from collections.abc import Sequence

import yaml

from muster.model import Json
from muster_plugins.schedulers.kubernetes.calls import (
    OF_AN_AGENT,
    OF_AN_AGENT_THAT_RESERVES,
    OF_ONE_OF_SEVERAL_COORDINATORS,
    OF_THE_COORDINATOR,
    OF_THE_SIGNER,
    Call,
)

_GROUP = "rbac.authorization.k8s.io"
_NAMESPACE = "muster"


def coordinator_manifests() -> list[Json]:
    """The permissions of a coordinator with the actor `kubernetes`."""
    return _grant("muster-coordinator", "muster-coordinator", OF_THE_COORDINATOR)


def standby_manifests() -> list[Json]:
    """The permissions of coordinators that elect their leader with a Lease."""
    return _grant("muster-coordinator-lease", "muster-coordinator", OF_ONE_OF_SEVERAL_COORDINATORS)


def agent_manifests() -> list[Json]:
    """The permissions of an agent with `plugins.kubernetes.enabled`."""
    return _grant("muster-agent", "muster-agent", OF_AN_AGENT)


def reservation_manifests() -> list[Json]:
    """The additional permissions of an agent that reserves its node."""
    return _grant("muster-agent-reservations", "muster-agent", OF_AN_AGENT_THAT_RESERVES)


def signer_manifests() -> list[Json]:
    """The permissions of the signer of agents' certificates."""
    return _grant("muster-signer", "muster-signer", OF_THE_SIGNER)


def as_yaml(manifests: Sequence[Json]) -> str:
    """The manifests as one file."""
    return yaml.safe_dump_all(manifests, sort_keys=False, default_flow_style=None, width=120)


def _grant(name: str, account: str, calls: Sequence[Call]) -> list[Json]:
    """A role for each namespace of the calls, or for the whole cluster, and its binding."""
    return [
        manifest
        for namespace in dict.fromkeys(call.namespace for call in calls)
        for manifest in _role(name, account, namespace, [call for call in calls if call.namespace == namespace])
    ]


def _role(name: str, account: str, namespace: str | None, calls: Sequence[Call]) -> list[Json]:
    kind = "Role" if namespace else "ClusterRole"
    head: Json = {"apiVersion": f"{_GROUP}/v1"}
    metadata: Json = {"name": name, **({"namespace": namespace} if namespace else {})}
    return [
        {**head, "kind": kind, "metadata": metadata, "rules": [*_rules(calls)]},
        {
            **head,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": _NAMESPACE}],
        },
    ]


def _rules(calls: Sequence[Call]) -> list[Json]:
    """The rules that allow these calls, one for each resource."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for call in calls:
        verbs.setdefault((call.group, call.resource), []).append(call.verb)
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": [*those]} for (group, resource), those in verbs.items()
    ]
