"""Writes to the stand-in for the Kubernetes API: versions, what may be stored, and who owns which field."""

import pytest

N1 = "/api/v1/nodes/n1"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
CORDONED = {"spec": {"unschedulable": True}}


def owners(node):
    """Who has which fields of an object beside the kubelet, as `{manager: fieldsV1}`."""
    entries = node["metadata"]["managedFields"]
    return {entry["manager"]: entry["fieldsV1"] for entry in entries if entry["manager"] != "kubelet"}


def version(node):
    return int(node["metadata"]["resourceVersion"])


@pytest.fixture(autouse=True)
def n1(standin):
    standin.add_node("n1", labels={"pool": "a"})


async def patch(client, change, path=N1, content_type=STRATEGIC, **more):
    return await client.ask("PATCH", path, change, content_type=content_type, **more)


async def test_versions(standin, client):
    """A write makes a newer version, one that changes nothing makes none, and a stale one is refused."""
    first = version(standin.node("n1"))
    _, changed = await patch(client, {"metadata": {"labels": {"pool": "b"}, "resourceVersion": str(first)}})
    assert version(changed) > first
    _, same = await patch(client, {"metadata": {"labels": {"pool": "b"}}})
    assert version(same) == version(changed)
    code, _ = await patch(client, {"metadata": {"labels": {"pool": "c"}, "resourceVersion": str(first)}})
    assert code == 409
    assert standin.node("n1")["metadata"]["labels"]["pool"] == "b"


async def test_the_status_is_written_apart(standin, client):
    """What is sent to a node changes no status, and what is sent to its status changes no spec."""
    change = {**CORDONED, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    before = standin.node("n1")
    await patch(client, change, f"{N1}/status")
    assert standin.node("n1")["spec"] == before["spec"]
    assert standin.node("n1")["status"] != before["status"]
    before = standin.node("n1")
    await patch(client, {**CORDONED, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert standin.node("n1")["spec"]["unschedulable"]
    assert standin.node("n1")["status"] == before["status"]


async def test_a_cordon_is_tainted_a_moment_later(standin, client, kubectl):
    """The controller taints what is unschedulable and owns all taints from then on; with the cordon its taint goes."""
    await kubectl.cordon("n1")
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    assert (await kubectl.get("n1"))["spec"]["taints"] == taints
    assert owners(standin.node("n1"))["kube-controller-manager"] == {"f:spec": {"f:taints": {}}}
    await kubectl.uncordon("n1")
    assert (await kubectl.get("n1"))["spec"] == {"providerID": standin.node("n1")["spec"]["providerID"]}


async def test_taints_by_kubectl(standin, kubectl):
    """An operator adds, replaces and removes taints by key."""
    await kubectl.taint("n1", "a", "1", "NoSchedule")
    await kubectl.taint("n1", "b", "1", "NoExecute")
    await kubectl.taint("n1", "a", "2", "NoSchedule")
    taints = {(taint["key"], taint["value"]) for taint in standin.node("n1")["spec"]["taints"]}
    assert taints == {("a", "2"), ("b", "1")}
    await kubectl.untaint("n1", "a")
    assert [taint["key"] for taint in standin.node("n1")["spec"]["taints"]] == ["b"]


async def test_labels_and_annotations_by_kubectl(standin, kubectl):
    """An operator sets and removes labels and annotations."""
    await kubectl.label("n1", "muster.dev/opt-out", "true")
    await kubectl.annotate("n1", "note", "two words")
    metadata = standin.node("n1")["metadata"]
    assert (metadata["labels"]["muster.dev/opt-out"], metadata["annotations"]["note"]) == ("true", "two words")
    await kubectl.label("n1", "muster.dev/opt-out", None)
    await kubectl.annotate("n1", "note", None)
    metadata = standin.node("n1")["metadata"]
    assert "muster.dev/opt-out" not in metadata["labels"]
    assert "note" not in metadata["annotations"]


async def test_the_last_to_change_a_field_owns_it(client):
    """An update takes fields that it changes from whoever had them, and leaves those that it only repeats."""
    await patch(client, CORDONED, fieldManager="one")
    _, node = await patch(client, {**CORDONED, "metadata": {"labels": {"pool": "b"}}}, fieldManager="two")
    assert owners(node)["one"] == {"f:spec": {"f:unschedulable": {}}}
    assert owners(node)["two"] == {"f:metadata": {"f:labels": {"f:pool": {}}}}
    _, node = await patch(client, {"spec": {"unschedulable": None}}, fieldManager="two")
    assert "one" not in owners(node)


async def test_apply_removes_what_it_no_longer_has(standin, client):
    """An apply adds, owns and later removes what it leaves out, and nothing that is somebody else's."""
    labels = {"muster.dev/a": "1", "muster.dev/b": "1"}
    await client.apply(N1, {**CORDONED, "metadata": {"labels": labels}})
    _, node = await client.apply(N1, {"metadata": {"labels": {"muster.dev/a": "1"}}})
    assert owners(node)["muster"] == {"f:metadata": {"f:labels": {"f:muster.dev/a": {}}}}
    assert "unschedulable" not in node["spec"]
    assert node["metadata"]["labels"].keys() >= {"pool", "muster.dev/a"}
    _, node = await client.apply(N1, {})
    assert not node["metadata"]["labels"].keys() & labels.keys()
    assert "muster" not in owners(node)


async def test_a_field_of_two_owners_stays_until_both_leave_it(client):
    """Appliers of the same value share a field; it is removed when the last of them leaves it out."""
    await client.apply(N1, CORDONED, "one")
    code, _ = await client.apply(N1, CORDONED, "two")
    assert code == 200
    _, node = await client.apply(N1, {}, "one")
    assert node["spec"]["unschedulable"]
    _, node = await client.apply(N1, {}, "two")
    assert "unschedulable" not in node["spec"]


async def test_force_takes_a_field(client):
    """A conflicting apply changes nothing, unless it is forced: then the field is the applier's alone."""
    await patch(client, {"metadata": {"labels": {"pool": "theirs", "zone": "z"}}}, fieldManager="theirs")
    config = {"metadata": {"labels": {"pool": "ours"}}}
    code, _ = await client.apply(N1, config)
    assert code == 409
    _, node = await client.apply(N1, config, force="true")
    assert node["metadata"]["labels"]["pool"] == "ours"
    assert owners(node)["theirs"] == {"f:metadata": {"f:labels": {"f:zone": {}}}}
    assert owners(node)["muster"] == {"f:metadata": {"f:labels": {"f:pool": {}}}}


async def test_an_apply_of_conditions(standin, client):
    """A condition is an item of its own: applying and leaving it out touches no other condition."""
    before = standin.node("n1")["status"]["conditions"]
    condition = {"type": "MusterHealthy", "status": "False", "reason": "XidFatal"}
    await client.apply(f"{N1}/status", {"status": {"conditions": [condition]}})
    assert standin.node("n1")["status"]["conditions"] == [*before, condition]
    await client.apply(f"{N1}/status", {"status": {"conditions": [condition | {"status": "True"}]}})
    assert standin.node("n1")["status"]["conditions"][-1]["status"] == "True"
    await client.apply(f"{N1}/status", {})
    assert standin.node("n1")["status"]["conditions"] == before


async def test_an_apply_to_what_is_not_there(standin, client):
    """An apply creates a node that is gone, if its user may create nodes, and a status of one it does not."""
    rules = [{"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["patch"]}]
    standin.add_user("patcher", {"kind": "ClusterRole", "rules": rules})
    ghost = "/api/v1/nodes/ghost"
    code, refused = await client.apply(ghost, {"metadata": {"name": "ghost"}}, user="patcher")
    assert (code, 'cannot create resource "nodes"' in refused["message"]) == (403, True)
    assert (await client.apply(f"{ghost}/status", {}, user="patcher"))[0] == 404
    assert (await client.apply(ghost, {"metadata": {"name": "ghost"}}))[0] == 201


async def test_a_dry_run(standin, client):
    """A dry run answers as if, and changes nothing."""
    _, node = await patch(client, CORDONED, dryRun="All")
    assert node["spec"]["unschedulable"]
    assert "unschedulable" not in standin.node("n1")["spec"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"metadata": {"labels": {"a": "two words"}}}, 422),
        ({"metadata": {"labels": {"a": "x" * 64}}}, 422),
        ({"metadata": {"labels": {"not/a/key": "x"}}}, 422),
        ({"metadata": {"annotations": {"a": 1}}}, 400),
        ({"metadata": {"annotations": {"a": "x" * (256 << 10)}}}, 422),
        ({"metadata": {"name": "n2"}}, 400),
        ({"spec": {"taints": [{"key": "a", "effect": "Drain"}]}}, 422),
        ({"spec": {"taints": [{"key": "a", "value": "two words", "effect": "NoSchedule"}]}}, 422),
        ({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]}}, 422),
    ],
)
async def test_what_is_not_stored(standin, client, change, code):
    """What Kubernetes would not store is refused."""
    before = standin.node("n1")
    assert (await patch(client, change, content_type=MERGE))[0] == code
    assert standin.node("n1") == before


EVENT = {"metadata": {"generateName": "n1."}, "reason": "MusterCordoned", "type": "Warning"}
NEW = {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingInstance": "i", "action": "Cordon"}


@pytest.mark.parametrize(
    ("path", "event", "code"),
    [
        ("/api/v1/namespaces/default/events", {"involvedObject": {"kind": "Node", "name": "n1"}}, 201),
        ("/api/v1/namespaces/muster/events", {"involvedObject": {"kind": "Node", "name": "n1"}}, 422),
        ("/apis/events.k8s.io/v1/namespaces/default/events", {**NEW, "reportingController": "muster.dev/m"}, 201),
        ("/apis/events.k8s.io/v1/namespaces/default/events", NEW, 422),
    ],
)
async def test_events(client, path, event, code):
    """Events are stored under names of their own, when they are complete and where they belong."""
    codes = [(await client.ask("POST", path, EVENT | event))[0] for _ in range(2)]
    assert codes == [code, code]
    _, listed = await client.ask("GET", path)
    assert len(listed["items"]) == 2 * (code == 201)


async def test_an_unknown_patch(client):
    """A patch of no known type is refused."""
    assert (await patch(client, CORDONED, content_type="application/json"))[0] == 415
