"""The condition of a node by which others see whether muster holds it for healthy. Pure."""

from muster import Transition
from muster.model import Json, ServiceState
from muster_plugins.schedulers.kubernetes.node import Node
from muster_plugins.schedulers.kubernetes.words import api_time, message, state_word

TYPE = "MusterHealthy"


def condition(node: Node, transition: Transition) -> Json:
    """True while the node is in service, else False. Since when holds for the status, not for the reason."""
    status = "True" if transition.after is ServiceState.IN_SERVICE else "False"
    now, before = api_time(transition.at), node.condition(TYPE)
    return {
        "type": TYPE,
        "status": status,
        "reason": state_word(transition.after),
        "message": message(transition),
        "lastHeartbeatTime": now,
        "lastTransitionTime": before.since if before and before.since and before.status == status else now,
    }
