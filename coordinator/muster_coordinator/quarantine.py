"""What we do about a node: its service state.

A new node is ACCEPTING until the evidence first says that it is healthy; from then on it is IN_SERVICE.
"""

from muster.model import Health, ServiceState

TRANSITIONS: dict[tuple[ServiceState, Health], ServiceState] = {
    (ServiceState.ACCEPTING, Health.HEALTHY): ServiceState.IN_SERVICE,
}
"""Where evidence leads; whatever stands nowhere here leaves the service state as it is."""


def decide(service: ServiceState, health: Health) -> ServiceState:
    """The service state of a node whose evidence says `health` now."""
    return TRANSITIONS.get((service, health), service)
