"""A coordinator that rehearses asks and changes nothing; one that may not act does not begin to enforce."""

import time

import pytest

from muster.errors import EX_UNAVAILABLE
from muster_plugins.schedulers.kubernetes.calls import ASK_RIGHTS

WITHIN_S = 2.0
"""For a change of health to be on the node: a second, and one for a machine that is busy."""

LOOK = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}
SHOW = {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}


@pytest.fixture
def reader(cluster):
    """Somebody who may look at nodes and write their conditions, and no more."""
    cluster.add_user("reader", {"kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": [LOOK, SHOW]})
    return "reader"


def test_a_dry_run_shows_health_and_only_reads_otherwise(new_fleet, cluster, reader, eventually, ecc):
    """It says what it would do, and the nodes get and lose no work. By a POST it only asks for its own rights."""
    with new_fleet("dry-run", user=reader) as fleet:
        fleet.start_coordinator()
        fleet.join("reliable-1", "reliable-2", "rehearsed")
        fleet.becomes("IN_SERVICE", "reliable-1", "reliable-2", "rehearsed", effect="WOULD")
        fleet.start_agent("rehearsed", ecc)
        fleet.becomes("CORDONED", "rehearsed", effect="WOULD")
        would = "kubernetes: WOULD: would patch node rehearsed: spec.unschedulable=true, "
        eventually(lambda: fleet.story("rehearsed", "action")[-1].startswith(would), "it to be stored what it would do")
        broken = [("False", "SimulatedEccUncorrected")]
        eventually(lambda: cluster.node("rehearsed").condition == broken, "its condition")
    assert cluster.node("rehearsed").is_untouched
    asked = {(it.verb, it.path) for it in cluster.standin.requests if it.user == reader}
    others = {verb for verb, path in asked if path != ASK_RIGHTS.path and not path.endswith("/status")}
    assert others == {"get", "list"}


def test_observe_mode_shows_health(new_fleet, cluster, reader, eventually, ecc):
    """A node that breaks reads so within a second of its check, and one whose agent is gone does not read healthy."""
    with new_fleet("observe", user=reader) as fleet:
        fleet.start_coordinator()
        fleet.join("watched")
        eventually(lambda: cluster.node("watched").condition == [("True", "Healthy")], "the condition of a good node")
        fleet.start_agent("watched", ecc)
        eventually(lambda: fleet.api.get("nodes", "watched")["health"] in {"SUSPECT", "FAILED"}, "the fault")
        known_at = time.monotonic()
        eventually(lambda: cluster.node("watched").condition == [("False", "SimulatedEccUncorrected")], "the condition")
        assert time.monotonic() - known_at < WITHIN_S
        first = heartbeat(cluster)
        eventually(lambda: heartbeat(cluster) > first, "a heartbeat")
        fleet.stop_agent("watched")
        eventually(lambda: cluster.node("watched").condition == [("Unknown", "AgentSilent")], "that it is silent")
    assert cluster.node("watched").is_untouched


def heartbeat(cluster):
    """When the condition was written last."""
    conditions = cluster.standin.node("watched")["status"]["conditions"]
    return next(it["lastHeartbeatTime"] for it in conditions if it["type"] == "MusterHealthy")


def test_who_may_not_patch_nodes_does_not_enforce(new_fleet, cluster, reader):
    """It ends, and says what to grant."""
    with new_fleet("enforce", user=reader) as fleet:
        fleet.coordinator.start()
        code, said = fleet.coordinator.ended()
    assert code == EX_UNAVAILABLE
    assert "Traceback" not in said
    assert said.splitlines()[-1] == (
        "muster: quarantine.mode = 'enforce' needs an actor that works, and there is none: "
        f"kubernetes: Kubernetes at {cluster.standin.url} does not let us patch nodes, "
        "create events in the namespace default: grant it by RBAC"
    )
