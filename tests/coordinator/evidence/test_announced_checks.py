"""What follows from the checks that a node has announced."""

import math

from muster.check import CheckInfo, Needs, Scope
from muster_coordinator.evidence.announced_checks import AnnouncedChecks
from muster_coordinator.model.orders import run_patience_s


def check(name: str, scope: Scope, cadence_s: float | None, needs: Needs = Needs.NOTHING) -> CheckInfo:
    return CheckInfo(
        name=name,
        summary="",
        scope=scope,
        needs=needs,
        cadence_s=cadence_s,
        timeout_s=20.0,
        objective=None,
        params={},
    )


HOST, GEMM = check("host", Scope.NODE, 60.0), check("gemm", Scope.NODE, 900.0, Needs.IDLE_NODE)
BY_HAND, GROUP = check("burn", Scope.NODE, None), check("collective", Scope.GROUP, 3600.0)


def test_only_checks_of_the_node_with_an_interval_run_in_the_background() -> None:
    """Those that need an idle node may never report; whoever asks for a run waits as long as it may take."""
    announced = AnnouncedChecks.of([HOST, GEMM, BY_HAND, GROUP])
    assert (announced.own, announced.reporting_soon) == (("host", "gemm"), ("host",))
    assert announced.shortest_cadence_s == 60.0
    assert announced.silent_after_s == dict.fromkeys(("host", "gemm", "burn"), run_patience_s(20.0))
    assert [*announced.by_name] == ["host", "gemm", "burn", "collective"]


def test_a_node_without_background_checks_has_no_cadence() -> None:
    """As one that has not sent its inventory."""
    assert AnnouncedChecks.of(()).shortest_cadence_s == math.inf
    assert AnnouncedChecks.of([BY_HAND]).own == ()


def test_nodes_that_announce_the_same_objects_share_what_follows() -> None:
    """Equal checks that are other objects do not: comparing them would take longer than working it out."""
    same, other = AnnouncedChecks.of([HOST, GEMM]), AnnouncedChecks.of([HOST.model_copy(), GEMM])
    assert AnnouncedChecks.of((HOST, GEMM)) is same
    assert other is not same
    assert other.by_name == same.by_name
