"""A large fleet in which a tenth of all nodes turn out bad at once."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from muster.model import Action, ServiceState, Severity
from muster.quarantine_settings import BudgetSettings, MassEventSettings, QuarantineSettings
from muster_coordinator.model.findings import Proof, StandingFinding
from muster_coordinator.model.quarantine_events import EvidenceChanged, NodeDescribed, NodeHeard, TimePassed
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.reconciler import Reconciler
from muster_coordinator.runtime.settings.policy_file import shipped_rows

NODES, BAD = 10_000, 1_000
NOW = 1_000_000.0


def lost_device(node: int) -> EvidenceChanged:
    """A GPU that has fallen off the bus."""
    charge = StandingFinding(
        check="nvml",
        code="nvml.device_lost",
        device=0,
        severity=Severity.ERROR,
        action=Action.REPLACE,
        summary="the GPU is not there any more",
        since=NOW,
        seen=NOW,
        run=f"run-{node}",
        proof=Proof.TWICE,
    )
    return EvidenceChanged(node=f"node-{node}", findings=(charge,), is_fit=False)


def cpu_s(work: Callable[[], Any]) -> float:
    """How long this process computes for it, in seconds, whatever else the machine does."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


@pytest.mark.parametrize(("per_minute", "taken_at_once"), [(6000, BAD), (6, 6)])
def test_a_thousand_faults_are_decided_within_two_seconds(per_minute: float, taken_at_once: int) -> None:
    """With what comes with muster as policy; then no more go for a minute, and the nodes that wait cost little."""
    budget = BudgetSettings(share="10%", domain_share="100%", per_minute=per_minute)
    settings = QuarantineSettings(mode="enforce", budget=budget, mass_event=MassEventSettings(nodes=NODES))
    reconciler = Reconciler(settings, Policy(shipped_rows()), 1)
    for number in range(NODES):
        name = f"node-{number}"
        reconciler.handle(NodeHeard(node=name), NOW)
        reconciler.handle(NodeDescribed(node=name, domain=f"rack-{number // 32}", own_checks=()), NOW)
        reconciler.handle(EvidenceChanged(node=name, findings=(), is_fit=True), NOW)
    found = [lost_device(10 * number) for number in range(BAD)]

    def decide() -> None:
        for event in found:
            reconciler.handle(event, NOW)

    assert cpu_s(decide) < 2
    states = [record.state for record in reconciler.records.values()]
    assert states.count(ServiceState.CORDONED) == taken_at_once
    assert states.count(ServiceState.HELD) == BAD - taken_at_once
    assert cpu_s(lambda: [reconciler.handle(TimePassed(), NOW + tick / 4) for tick in range(1, 101)]) < 0.1
    assert reconciler.fleet_view().away == taken_at_once
