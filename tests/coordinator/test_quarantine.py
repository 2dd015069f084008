"""Service state."""

from itertools import product

import pytest

from muster.model import Health, ServiceState
from muster_coordinator.quarantine import decide


@pytest.mark.parametrize(("service", "health", "examined"), list(product(ServiceState, Health, (False, True))))
def test_only_a_healthy_new_node_moves(service: ServiceState, health: Health, examined: bool) -> None:
    """A node that is being accepted goes into service when it is examined and healthy; nothing else changes."""
    accepted = service is ServiceState.ACCEPTING and health is Health.HEALTHY and examined
    assert decide(service, health, examined=examined) is (ServiceState.IN_SERVICE if accepted else service)
