"""A coordinator that rehearses asks and changes nothing; one that may not act does not begin to enforce."""

import pytest

from muster.errors import EX_UNAVAILABLE
from muster_plugins.schedulers.kubernetes.calls import ASK_RIGHTS

LOOK = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}


@pytest.fixture
def reader(cluster):
    """Somebody who may look at nodes, and no more."""
    cluster.add_user("reader", {"kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": [LOOK]})
    return "reader"


def test_a_dry_run_only_reads(new_fleet, cluster, reader, eventually, ecc):
    """It says what it would do, and the nodes stay as they are. Nothing but its own rights is asked for by a POST."""
    with new_fleet("dry-run", user=reader) as fleet:
        fleet.start_coordinator()
        fleet.join("reliable-1", "reliable-2", "rehearsed")
        fleet.becomes("IN_SERVICE", "reliable-1", "reliable-2", "rehearsed", effect="WOULD")
        fleet.start_agent("rehearsed", ecc)
        fleet.becomes("CORDONED", "rehearsed", effect="WOULD")
        would = "kubernetes: WOULD: would patch node rehearsed: spec.unschedulable=true, "
        eventually(lambda: fleet.story("rehearsed", "action")[-1].startswith(would), "it to be stored what it would do")
    assert cluster.node("rehearsed").is_untouched
    asked = {(it.verb, it.path) for it in cluster.standin.requests if it.user == reader}
    assert {verb for verb, path in asked if path != ASK_RIGHTS.path} == {"get", "list"}


def test_who_may_not_patch_nodes_does_not_enforce(new_fleet, cluster, reader):
    """It ends, and says what to grant."""
    with new_fleet("enforce", user=reader) as fleet:
        fleet.coordinator.start()
        code, said = fleet.coordinator.ended()
    assert code == EX_UNAVAILABLE
    assert "Traceback" not in said
    assert said.splitlines()[-1] == (
        "muster: quarantine.mode = 'enforce' needs an actor that works, and there is none: "
        f"kubernetes: Kubernetes at {cluster.standin.url} does not let us patch nodes, patch nodes/status, "
        "create events in the namespace default: grant it by RBAC"
    )
