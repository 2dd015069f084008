"""The life of a node in Kubernetes: it is new, gets work, breaks, goes, is repaired, comes back, and leaves."""

import re

STARTUP_TAINT = {"key": "muster.dev/accepting", "effect": "NoSchedule"}

STORY = (
    "  joined  ",
    "  service  ACCEPTING to IN_SERVICE: ",
    "  action  kubernetes: DONE: node new: no taint muster.dev/accepting:NoSchedule; ",
    "  found  simulated.ecc_uncorrected: ",
    "  second_opinion  simulated runs again as a second opinion",
    "  policy  simulated.ecc_uncorrected requires draining (policy row gpu-memory): ",
    "  service  IN_SERVICE to CORDONED: ",
    "  action  kubernetes: DONE: node new: spec.unschedulable=true, ",
    "  lost  ",
    "  back  ",
    "  service  CORDONED to PROBATION: it was away and is back",
    "  test  simulated: PASS",
    "  test  simulated: PASS",
    "  service  PROBATION to IN_SERVICE: passed its tests 2 times in a row",
    "  action  kubernetes: DONE: node new: no taint muster.dev/quarantine:NoSchedule; no spec.unschedulable, ",
)
"""What `muster node story` has to tell, in this order, among other things."""


def test_from_new_to_broken_and_back(fleet, cluster, muster, eventually, ecc):
    """Each state shows on the node, and afterwards its story tells all of it in order."""
    cluster.register("new", taints=[STARTUP_TAINT])
    eventually(lambda: "new" in fleet.unheard(), "the survey to see it")
    fleet.start_agent("new", interval_s=3600.0)  # so nothing examines the node before it is asked for
    assert fleet.view("new")["mark"] == "OURS"
    assert "new" not in fleet.unheard()
    eventually(lambda: fleet.case("new")["own_checks"], "its inventory")
    assert fleet.case("new")["state"] == "ACCEPTING"
    assert cluster.node("new").taints == ["muster.dev/accepting"]

    fleet.api.post("nodes", "new", "runs", body={"check": "simulated", "params": {}})
    fleet.becomes("IN_SERVICE", "new")
    node = cluster.node("new")
    assert (node.cordoned, node.taints, node.state) == (False, [], "in-service")
    eventually(lambda: cluster.node("new").condition == [("True", "Healthy")], "the condition")

    fleet.start_agent("new", ecc)
    fleet.becomes("CORDONED", "new")
    node = cluster.node("new")
    assert (node.is_quarantined, node.state) == (True, "cordoned")
    eventually(lambda: cluster.node("new").condition == [("False", "SimulatedEccUncorrected")], "the condition")

    fleet.stop_agent("new")
    eventually(lambda: cluster.node("new").condition == [("Unknown", "AgentSilent")], "the condition")
    fleet.start_agent("new")
    fleet.becomes("IN_SERVICE", "new")
    node = cluster.node("new")
    assert (node.cordoned, node.taints, node.mark, node.state) == (False, [], None, "in-service")
    eventually(lambda: cluster.node("new").condition == [("True", "Healthy")], "the condition")
    assert cluster.events("new") == [
        ("Normal", "InService"),
        ("Warning", "Cordoned"),
        ("Normal", "Probation"),
        ("Normal", "InService"),
    ]

    told = re.compile(".*".join(["", *map(re.escape, STORY), ""]), re.DOTALL)
    eventually(lambda: told.fullmatch(muster("node", "story", "new", "--url", fleet.url).stdout), "the whole story")
    fleet.leave("new")


def test_a_new_machine_under_an_old_name_is_accepted_first(fleet, cluster, eventually):
    """As when a cloud repairs a node. What was measured on the one before proves nothing."""
    fleet.join("again", taints=[STARTUP_TAINT])
    fleet.becomes("IN_SERVICE", "again")
    assert (fleet.view("again")["node"], cluster.node("again").taints) == ("again", [])
    cluster.kubectl("delete", "again")
    cluster.register("again", taints=[STARTUP_TAINT])
    fleet.start_agent("again", interval_s=3600.0)  # so nothing examines the node before it is asked for
    eventually(lambda: fleet.case("again")["state"] == "ACCEPTING", "it to be taken as a new one")
    eventually(lambda: fleet.case("again")["own_checks"], "its inventory")
    seen = len(cluster.standin.requests)
    eventually(lambda: lists(cluster, seen) >= 2, "another survey")
    assert (fleet.case("again")["state"], cluster.node("again").taints) == ("ACCEPTING", ["muster.dev/accepting"])

    fleet.api.post("nodes", "again", "runs", body={"check": "simulated", "params": {}})
    fleet.becomes("IN_SERVICE", "again")
    assert cluster.node("again").taints == []
    fleet.leave("again")


def lists(cluster, seen):
    """How often the nodes were listed since so many requests."""
    return sum(request.verb == "list" for request in cluster.standin.requests[seen:])


def test_a_node_that_leaves_is_no_failure(fleet, cluster, eventually):
    """The autoscaler announces it and deletes the node, its agent falls silent, and nothing stands against it."""
    fleet.join("leaver")
    fleet.becomes("IN_SERVICE", "leaver")
    before = cluster.patches("leaver")
    cluster.kubectl("taint", "leaver", "ToBeDeletedByClusterAutoscaler", "1", "NoSchedule")
    eventually(lambda: fleet.view("leaver")["leaving"], "the survey to see that it leaves")
    fleet.stop_agent("leaver")
    eventually(lambda: fleet.case("leaver")["lost_at"], "the coordinator to miss it")
    cluster.kubectl("delete", "leaver")
    eventually(lambda: fleet.case("leaver")["left"], "it to have left")
    assert (fleet.case("leaver")["findings"], cluster.patches("leaver")) == ([], before)
    assert fleet.story("leaver", "service") == ["ACCEPTING to IN_SERVICE: all checks reported, and it is healthy"]
    told = ["Silent, and no scheduler lists it any more"]  # what has been decided is stored a moment later
    eventually(lambda: fleet.story("leaver", "left") == told, "the story to say so")
