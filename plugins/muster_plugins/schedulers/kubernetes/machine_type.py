"""The machine type by the labels of this node in Kubernetes."""

import time
from collections.abc import Mapping

import structlog
from pydantic import ValidationError

from muster import MachineType
from muster.machine_type import labelled_machine_type
from muster_plugins.schedulers.kubernetes.api import ApiServer, Unanswered
from muster_plugins.schedulers.kubernetes.calls import READ_NODE
from muster_plugins.schedulers.kubernetes.node import KubernetesNode

PAUSE_S = 600.0
"""Seconds until the API server is asked again after it gave no machine type: ten thousand agents may ask."""

_FROM_MEMORY = {"resourceVersion": "0"}
"""The API server answers from its cache. A label that is some seconds old is as good."""

log = structlog.get_logger()


class LabelReader:
    """Reads the machine type of a node. A node keeps it as long as it lives, so it is read once."""

    def __init__(self, server: ApiServer, node: str) -> None:
        self._server = server
        self._node = node
        self._known: MachineType | None = None
        self._not_before = 0.0

    def read(self) -> list[MachineType]:
        """The machine type in the labels; nothing if no label has it, or the server does not answer."""
        if self._known is None and time.monotonic() >= self._not_before:
            self._not_before = time.monotonic() + PAUSE_S
            try:
                self._known = labelled_machine_type(self._labels())
            except (Unanswered, OSError) as error:
                log.warning("labels_of_node_unread", node=self._node, why=str(error))
        return [] if self._known is None else [self._known]

    def _labels(self) -> Mapping[str, str]:
        answer = self._server.get(READ_NODE.path.format(name=self._node), _FROM_MEMORY)
        try:
            return KubernetesNode.model_validate_json(answer).metadata.labels
        except ValidationError:
            raise Unanswered("an answer that is not a node") from None
