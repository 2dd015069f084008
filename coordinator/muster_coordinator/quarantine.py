"""What we do about a node: its service state.

A new node is ACCEPTING until it has been examined and the evidence says that it is healthy; from then on it is
IN_SERVICE. Examined means that every check which runs by itself and waits for no idle node has had its say: that the
first of them passes, or that all plugins loaded, makes no node fit for work.
"""

from muster.model import Health, ServiceState

TRANSITIONS: dict[tuple[ServiceState, Health], ServiceState] = {
    (ServiceState.ACCEPTING, Health.HEALTHY): ServiceState.IN_SERVICE,
}
"""Where evidence leads; whatever stands nowhere here leaves the service state as it is."""


def decide(service: ServiceState, health: Health, *, examined: bool) -> ServiceState:
    """The service state of a node whose evidence says `health` now."""
    if service is ServiceState.ACCEPTING and not examined:
        return service
    return TRANSITIONS.get((service, health), service)
