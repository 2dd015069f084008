"""What people say with kubectl goes before what muster wants."""

import pytest


def test_a_node_that_an_operator_uncordons_stays_in_service(fleet, cluster, muster, eventually, ecc):
    """However often the fault is found, until somebody releases the node from the hold that this puts it under."""
    fleet.join("pardoned", faults=(ecc,))
    fleet.becomes("CORDONED", "pardoned")
    cluster.kubectl("uncordon", "pardoned")
    eventually(lambda: fleet.case("pardoned")["hold"], "the hold")
    assert fleet.case("pardoned")["hold"]["by"] == "somebody at kubernetes"
    said = "Resumed by hand in kubernetes; muster will not drain it until `muster quarantine release pardoned`"
    assert said in fleet.case("pardoned")["hold"]["reason"]
    logged = fleet.coordinator.logged("resumed_by_hand")
    assert (logged["level"], logged["node"], logged["text"]) == ("warning", "pardoned", said)
    fleet.becomes("IN_SERVICE", "pardoned")
    found_at = fleet.case("pardoned")["findings"][0]["seen"]
    eventually(lambda: fleet.case("pardoned")["findings"][0]["seen"] > found_at, "the fault to be found again")
    node = cluster.node("pardoned")
    assert (fleet.case("pardoned")["state"], node.cordoned, node.taints, node.mark) == ("IN_SERVICE", False, [], None)

    released = muster("quarantine", "release", "pardoned", "--reason", "the GPU is bad indeed", "--url", fleet.url)
    assert released.returncode == 0, released.stderr
    fleet.becomes("CORDONED", "pardoned")
    assert cluster.node("pardoned").is_quarantined
    fleet.leave("pardoned")


@pytest.fixture
def alone(fleet, cluster, eventually):
    """Two nodes that muster knows to leave alone: a new one that people have cordoned, and one with their label."""
    fleet.join("theirs", unschedulable=True, taints=[{"key": "muster.dev/accepting", "effect": "NoSchedule"}])
    fleet.join("opted-out", labels={"muster.dev/opt-out": "true"})
    eventually(lambda: fleet.view("theirs")["mark"] == "FOREIGN", "the cordon to be seen")
    eventually(lambda: fleet.view("opted-out")["opted_out"], "the label to be seen")
    yield ("theirs", "opted-out")
    fleet.leave("theirs", "opted-out")


def test_what_is_theirs_is_left_alone(fleet, cluster, alone, eventually, ecc):
    """Neither a node that they have cordoned nor one that has opted out is touched, be it broken or repaired."""
    for node in alone:
        fleet.start_agent(node, ecc)
    for node in alone:
        eventually(lambda node=node: is_proven(fleet.case(node)), f"the fault of {node} to be proven")
    for node in alone:
        fleet.start_agent(node)
    for node in alone:
        eventually(lambda node=node: not fleet.case(node)["requirement"], f"{node} to be healthy again")
        assert (fleet.case(node)["state"], cluster.patches(node)) == ("IN_SERVICE", [])
        assert cluster.node(node).is_untouched
    assert (cluster.node("theirs").cordoned, cluster.node("opted-out").cordoned) == (True, False)

    cluster.kubectl("uncordon", "theirs")
    eventually(lambda: not cluster.node("theirs").taints, "the taint of new nodes to go once the cordon is gone")
    fleet.becomes("IN_SERVICE", "theirs")


def is_proven(case):
    return case["requirement"] is not None and not case["requirement"]["unproven"]


def test_a_taint_of_others_uses_the_budget(fleet, cluster, eventually):
    """The node is away for as long as it has it, and the budget says why; muster leaves node and taint alone."""
    fleet.join("tainted")
    fleet.becomes("IN_SERVICE", "tainted")
    cluster.kubectl("taint", "tainted", "example.com/unhealthy", "1", "NoSchedule")
    others = [{"how": "kubernetes: taint example.com/unhealthy=1:NoSchedule", "nodes": ["tainted"]}]
    eventually(
        lambda: fleet.api.get("quarantine", "budget")["quarantine"]["kept_off"] == others, "the budget to name it"
    )
    assert (fleet.case("tainted")["state"], cluster.cordons("tainted")) == ("IN_SERVICE", [])
    fleet.leave("tainted")
