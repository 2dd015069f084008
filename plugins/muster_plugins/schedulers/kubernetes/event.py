"""The Event about a transition, for `kubectl describe node` and collectors of events. Pure."""

from hashlib import sha256

from muster import Transition
from muster.model import Json, ServiceState
from muster_plugins.schedulers.kubernetes.node import KubernetesNode
from muster_plugins.schedulers.kubernetes.texts import api_time, message, state_word

_WARNED_OF = frozenset({ServiceState.CORDONED, ServiceState.HELD})


def event(node: KubernetesNode, transition: Transition) -> Json:
    """The Event. Its name comes from the transition's id, so repeated writes make one Event."""
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
