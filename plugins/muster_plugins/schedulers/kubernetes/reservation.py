"""Keeps new pods off this node during a test, by a taint whose value names the fleet.

A taint with another value belongs to somebody else and is respected. A taint has no room for a reason.
"""

import re
from collections.abc import Callable

from pydantic import ValidationError

from muster.model import Json
from muster_plugins.schedulers.kubernetes.api import ApiServer, Outdated, Unanswered
from muster_plugins.schedulers.kubernetes.calls import PATCH_NODE, READ_NODE
from muster_plugins.schedulers.kubernetes.node import KubernetesNode
from muster_plugins.schedulers.kubernetes.taints import Taint, taints_patch

KEY = "muster.dev/testing"

_MANAGER = "muster-agent"
_MOST_CHARACTERS = 63


class ReservedByOthers(Exception):
    """Somebody else has reserved the node; the text says who."""


class TestingTaint:
    """The taint of a fleet's agent on its own node."""

    __test__ = False  # otherwise pytest would collect it as a test

    def __init__(self, server: ApiServer, node: str, fleet: str) -> None:
        self._server = server
        self._node = node
        value = re.sub(r"[^A-Za-z0-9]+$", "", fleet[:_MOST_CHARACTERS])
        self._taint = Taint(key=KEY, effect="NoSchedule", value=value)

    def add(self, _why: str) -> None:
        """Adds the taint, or keeps it. Raises ReservedByOthers or Unanswered if it cannot."""
        self._change(self._with_ours)

    def remove(self) -> None:
        """Removes the taint from the node, if it is there."""
        self._change(self._without_ours)

    def _with_ours(self, taints: list[Taint]) -> list[Taint]:
        for taint in taints:
            if taint.key == KEY and not self._is_ours(taint):
                raise ReservedByOthers(f"node {self._node} has the taint {taint} of somebody else")
        return taints if any(map(self._is_ours, taints)) else [*taints, self._taint]

    def _without_ours(self, taints: list[Taint]) -> list[Taint]:
        return [taint for taint in taints if not self._is_ours(taint)]

    def _is_ours(self, taint: Taint) -> bool:
        return str(taint) == str(self._taint)

    def _change(self, changed: Callable[[list[Taint]], list[Taint]]) -> None:
        try:
            self._change_once(changed)
        except Outdated:
            self._change_once(changed)

    def _change_once(self, changed: Callable[[list[Taint]], list[Taint]]) -> None:
        node = self._read()
        taints = changed(node.spec.taints)
        if taints != node.spec.taints:
            change: Json = {"metadata": {"resourceVersion": node.metadata.version}, **taints_patch(taints)}
            self._server.patch(PATCH_NODE.path.format(name=self._node), change, _MANAGER)

    def _read(self) -> KubernetesNode:
        answer = self._server.get(READ_NODE.path.format(name=self._node), {})
        try:
            return KubernetesNode.model_validate_json(answer)
        except ValidationError:
            raise Unanswered("an answer that is not a node") from None
