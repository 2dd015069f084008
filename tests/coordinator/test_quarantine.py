"""Service state."""

from itertools import product

import pytest

from muster.model import Health, ServiceState
from muster_coordinator.quarantine import decide


@pytest.mark.parametrize(("service", "health"), list(product(ServiceState, Health)))
def test_only_a_healthy_new_node_moves(service: ServiceState, health: Health) -> None:
    """A node that is being accepted goes into service when it is first healthy; nothing else changes by itself."""
    accepted = service is ServiceState.ACCEPTING and health is Health.HEALTHY
    assert decide(service, health) is (ServiceState.IN_SERVICE if accepted else service)
