"""The machine type by the labels of this node in Kubernetes."""

from collections.abc import Iterator

import structlog
from pydantic import ValidationError

from muster import MachineType
from muster.machine_type import labelled_machine_type
from muster_plugins.schedulers.kubernetes.api import ApiServer, Unanswered
from muster_plugins.schedulers.kubernetes.calls import READ_NODE
from muster_plugins.schedulers.kubernetes.node import KubernetesNode

log = structlog.get_logger()

_known: dict[str, MachineType] = {}
"""By node: a node keeps its machine type as long as it lives, so the API server is asked once."""


def machine_types(server: ApiServer, node: str) -> Iterator[MachineType]:
    """The machine type in the labels of the node; nothing if it has no such label, or the server does not answer."""
    if node not in _known:
        try:
            labelled = labelled_machine_type(_labels(server, node))
        except (Unanswered, OSError) as error:
            log.warning("labels_of_node_unread", node=node, why=str(error))
            return
        if labelled is None:
            return
        _known[node] = labelled
    yield _known[node]


def _labels(server: ApiServer, node: str) -> dict[str, str]:
    try:
        return KubernetesNode.model_validate_json(server.get(READ_NODE.path.format(name=node), {})).metadata.labels
    except ValidationError:
        raise Unanswered("an answer that is not a node") from None
