"""The Event by which `kubectl describe node` and whoever collects events tell of a transition. Pure."""

from hashlib import sha256

from muster import Transition
from muster.model import Json, ServiceState
from muster_plugins.schedulers.kubernetes.node import Node
from muster_plugins.schedulers.kubernetes.texts import api_time, message, state_word

_WARNED_OF = frozenset({ServiceState.CORDONED, ServiceState.HELD})


def event(node: Node, transition: Transition) -> Json:
    """The Event. Its name is made of the transition's id, so that there is one, however often it is told."""
    name = f"muster-{sha256(f'{node.metadata.uid} {transition.id}'.encode()).hexdigest()[:20]}"
    now = api_time(transition.at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.metadata.uid},
        "type": "Warning" if transition.after in _WARNED_OF else "Normal",
        "reason": state_word(transition.after),
        "message": message(transition),
        "source": {"component": "muster"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
