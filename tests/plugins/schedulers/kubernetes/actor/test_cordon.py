"""Nodes are taken out of scheduling and let back, and what others say about them is respected."""

import json

import pytest
from benchmarks.kubernetes_standin.objects import node as new_node
from benchmarks.kubernetes_standin.resources import EVENTS

from muster import Effect, Mark

TAINT = {"key": "muster.dev/quarantine", "effect": "NoSchedule"}


def taints(node):
    """All but the one that Kubernetes itself adds to whatever is cordoned."""
    return [taint for taint in node["spec"].get("taints", []) if taint["key"] != "node.kubernetes.io/unschedulable"]


def events(standin):
    return [stored.item for _, stored in standin.store.all(EVENTS)]


def writes(standin):
    """The requests by which we wanted to change a node."""
    return [request for request in standin.requests if request.query.get("fieldManager") == "muster"]


async def test_a_node_is_cordoned_and_uncordoned(standin, coordinator):
    """With a trace on the node, and none of it afterwards but its label."""
    outcome = await coordinator.tell("CORDONED")
    assert outcome.effect is Effect.DONE
    assert "spec.unschedulable=true" in outcome.detail
    node = standin.node("n1")
    assert node["spec"]["unschedulable"] is True
    assert taints(node) == [TAINT]
    assert node["metadata"]["labels"]["muster.dev/service-state"] == "cordoned"
    assert (await coordinator.see()).model_dump(include={"mark", "transition"}) == {
        "mark": Mark.OURS,
        "transition": "to-CORDONED",
    }

    assert (await coordinator.tell("PROBATION", before="CORDONED")).effect is Effect.DONE
    assert standin.node("n1")["spec"]["unschedulable"] is True

    assert (await coordinator.tell("IN_SERVICE", before="PROBATION")).effect is Effect.DONE
    node = standin.node("n1")
    assert "unschedulable" not in node["spec"]
    assert taints(node) == []
    assert node["metadata"]["labels"]["muster.dev/service-state"] == "in-service"
    assert not [key for key in node["metadata"]["annotations"] if key.startswith("muster.dev")]
    assert (await coordinator.see()).mark is Mark.NONE


async def test_fields_are_ours_by_server_side_apply(standin, coordinator):
    """Under a field manager of our own; nothing of the node beside them is."""
    await coordinator.tell("CORDONED")
    owned = {
        (entry["operation"], entry.get("subresource")): entry["fieldsV1"]
        for entry in standin.node("n1")["metadata"]["managedFields"]
        if entry["manager"] == "muster"
    }
    assert owned["Apply", None] == {
        "f:metadata": {
            "f:annotations": {"f:muster.dev/quarantine": {}},
            "f:labels": {"f:muster.dev/service-state": {}},
        },
        "f:spec": {"f:unschedulable": {}},
    }
    assert [*owned] == [("Apply", None), ("Update", None)]


async def test_what_others_write_into_our_fields_does_not_stop_us(standin, coordinator, kubectl):
    """Their values do not block us and are overwritten, because the state is ours."""
    await coordinator.tell("CORDONED")
    await kubectl.label("n1", "muster.dev/service-state", "fine")
    assert (await coordinator.tell("PROBATION")).effect is Effect.DONE
    assert standin.node("n1")["metadata"]["labels"]["muster.dev/service-state"] == "probation"


async def test_a_transition_can_be_told_again(standin, coordinator):
    """A repeated call leaves the node and its one Event as they are."""
    await coordinator.tell("CORDONED")
    before, (event,) = standin.node("n1"), events(standin)
    assert (await coordinator.tell("CORDONED")).effect is Effect.DONE
    assert (standin.node("n1")["metadata"]["resourceVersion"], events(standin)) == (
        before["metadata"]["resourceVersion"],
        [event],
    )
    assert (event["type"], event["reason"]) == ("Warning", "Cordoned")
    assert event["message"] == "GPU 3 has fallen off the bus (nvml.device_lost) (to-CORDONED)"
    assert event["involvedObject"]["uid"] == before["metadata"]["uid"]


async def test_event_and_annotation_say_the_cause(standin, coordinator):
    """The Event's message begins with it and ends with the transition's id, whatever comes between."""
    bus = {"code": "nvml.xid", "check": "nvml", "device": 3, "uuid": "GPU-5c1d", "xid": 79, "summary": "off the bus"}
    told = {"causes": [bus], "action": "REBOOT_NODE", "reason": "policy row fallen-off-the-bus " + "x" * 2000}
    await coordinator.tell("CORDONED", **told)
    (event,) = events(standin)
    assert event["message"].startswith("XID 79 GPU3: off the bus; reboot the node; GPU-5c1d; policy row fallen-off-")
    assert event["message"].endswith("x (to-CORDONED)")
    assert len(event["message"]) == 1024
    mark = json.loads(standin.node("n1")["metadata"]["annotations"]["muster.dev/quarantine"])
    assert mark["causes"] == [bus]


async def test_a_dry_run_changes_nothing_and_says_all(standin, coordinator):
    """The text is the same as that of the real action."""
    outcome = await coordinator.tell("CORDONED", dry_run=True)
    assert (outcome.effect, writes(standin), events(standin)) == (Effect.WOULD, [], [])
    assert outcome.detail == (
        "would patch node n1: spec.unschedulable=true, label muster.dev/service-state=cordoned, "
        "annotation muster.dev/quarantine; taint muster.dev/quarantine:NoSchedule"
    )


async def test_a_person_s_cordon_is_respected(standin, coordinator, kubectl):
    """It is neither taken over nor removed, and the survey reports it."""
    await kubectl.cordon("n1")
    for after in ("CORDONED", "IN_SERVICE"):
        outcome = await coordinator.tell(after)
        assert outcome.effect is Effect.LEFT
        assert "cordoned with kubectl" in outcome.detail
    seen = await coordinator.see()
    assert (seen.mark, seen.transition) == (Mark.FOREIGN, None)
    assert "cordoned with kubectl" in seen.detail
    assert standin.node("n1")["spec"]["unschedulable"] is True
    await kubectl.uncordon("n1")
    assert (await coordinator.tell("CORDONED")).effect is Effect.DONE


async def test_a_person_s_uncordon_is_respected(standin, coordinator, kubectl):
    """The node is not cordoned again, and the rest of our mark is removed when it returns."""
    await coordinator.tell("CORDONED")
    await kubectl.uncordon("n1")
    assert (await coordinator.see()).mark is Mark.UNDONE
    for after in ("CORDONED", "PROBATION"):
        outcome = await coordinator.tell(after)
        assert outcome.effect is Effect.LEFT
        assert "somebody has uncordoned it since" in outcome.detail
    assert "unschedulable" not in standin.node("n1")["spec"]
    assert (await coordinator.tell("IN_SERVICE")).effect is Effect.DONE
    assert (taints(standin.node("n1")), (await coordinator.see()).mark) == ([], Mark.NONE)


async def test_a_cordon_that_a_person_put_over_ours_stays(standin, coordinator, kubectl):
    """We remove our own cordon, and the API server knows that the remaining one belongs to somebody else."""
    await coordinator.tell("CORDONED")
    await kubectl.uncordon("n1")
    await kubectl.cordon("n1")
    seen = await coordinator.see()
    assert (seen.mark, "cordoned with kubectl" in seen.detail) == (Mark.FOREIGN, True)
    outcome = await coordinator.tell("PROBATION")
    assert (outcome.effect, "not ours to change" in outcome.detail) == (Effect.LEFT, True)
    outcome = await coordinator.tell("IN_SERVICE")
    assert (outcome.effect, "but it is cordoned with kubectl" in outcome.detail) == (Effect.LEFT, True)
    node = standin.node("n1")
    assert (node["spec"]["unschedulable"], taints(node)) == (True, [])
    assert (await coordinator.see()).mark is Mark.FOREIGN


async def test_taints_of_others_stay(standin, coordinator, kubectl):
    """Those from before, and those from while the node was out."""
    await kubectl.taint("n1", "example.com/a", "1", "PreferNoSchedule")
    await coordinator.tell("CORDONED")
    await kubectl.taint("n1", "example.com/b", "2", "NoSchedule")
    await coordinator.tell("IN_SERVICE")
    assert [taint["key"] for taint in taints(standin.node("n1"))] == ["example.com/a", "example.com/b"]


async def test_a_node_that_has_opted_out_is_left_alone(standin, coordinator, kubectl):
    """Every transition leaves it alone."""
    await kubectl.label("n1", "muster.dev/opt-out", "true")
    for after in ("CORDONED", "IN_SERVICE"):
        assert (await coordinator.tell(after)).effect is Effect.LEFT
    assert (writes(standin), (await coordinator.see()).opted_out) == ([], True)


@pytest.mark.parametrize("after", ["CORDONED", "IN_SERVICE"])
async def test_a_node_that_is_gone_is_no_failure(coordinator, kubectl, after):
    """A retry would not help."""
    await kubectl.delete("n1")
    outcome = await coordinator.tell(after)
    assert (outcome.effect, outcome.detail) == (Effect.LEFT, "Kubernetes has no node n1")


async def test_a_new_node_is_admitted(standin, coordinator, kubectl):
    """The startup taint is removed when the node is in service, and not before."""
    startup = {"key": "muster.dev/accepting", "effect": "NoSchedule"}
    await kubectl.create(new_node("n2", taints=[startup]))
    assert (await coordinator.see("n2")).mark is Mark.OURS
    await coordinator.tell("ACCEPTING", node="n2")
    assert startup in taints(standin.node("n2"))
    assert (await coordinator.tell("IN_SERVICE", node="n2", before="ACCEPTING")).effect is Effect.DONE
    assert (taints(standin.node("n2")), (await coordinator.see("n2")).mark) == ([], Mark.NONE)


async def test_no_pod_is_evicted(standin, coordinator):
    """Work that is on the node runs to its end."""
    standin.add_pod("job", "n1", gpus=8)
    await coordinator.tell("CORDONED")
    assert not [request for request in standin.requests if "pods" in request.path]


async def test_a_cordon_stays_ours_when_only_its_mark_is_removed(standin, coordinator, kubectl):
    """The API server knows who cordoned; the next call restores the mark or removes everything."""
    await coordinator.tell("CORDONED")
    mark = standin.node("n1")["metadata"]["annotations"]["muster.dev/quarantine"]
    for after in ("CORDONED", "IN_SERVICE"):
        await kubectl.annotate("n1", "muster.dev/quarantine", None)
        seen = await coordinator.see()
        assert (seen.mark, seen.transition, seen.incomplete) == (Mark.OURS, None, True)
        assert (await coordinator.tell(after)).effect is Effect.DONE
        seen, node = await coordinator.see(), standin.node("n1")
        assert not seen.incomplete
        assert node["metadata"]["annotations"].get("muster.dev/quarantine") == (mark if after == "CORDONED" else None)
    assert (node["spec"].get("unschedulable", False), taints(node)) == (False, [])


async def test_a_taint_of_ours_that_somebody_has_removed_is_put_back(standin, coordinator, kubectl):
    """The next call of the transition restores it, which the survey requests."""
    await coordinator.tell("CORDONED")
    await kubectl.untaint("n1", TAINT["key"])
    assert (await coordinator.see()).incomplete
    assert (await coordinator.tell("CORDONED")).effect is Effect.DONE
    assert (taints(standin.node("n1")), (await coordinator.see()).incomplete) == ([TAINT], False)


async def test_a_taint_without_cordon_and_mark_is_theirs(standin, coordinator, kubectl):
    """If somebody removes everything but the taint, the taint is theirs and keeps work off the node."""
    await coordinator.tell("CORDONED")
    await kubectl.annotate("n1", "muster.dev/quarantine", None)
    await kubectl.uncordon("n1")
    outcome = await coordinator.tell("IN_SERVICE")
    assert (outcome.effect, outcome.detail) == (
        Effect.LEFT,
        "node n1 is tainted by somebody else, which is not ours to change",
    )
