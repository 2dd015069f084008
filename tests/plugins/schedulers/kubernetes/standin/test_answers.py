"""The stand-in for the Kubernetes API answers in the shapes of real servers, and lets in whom it should."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from benchmarks.kubernetes_standin.objects import node
from benchmarks.kubernetes_standin.resources import MERGE_KEYS

RECORDED = Path(__file__).parent / "recorded"
ANSWERS = json.loads((RECORDED / "answers.json").read_text())

NODES = "/api/v1/nodes"
STRATEGIC = "application/strategic-merge-patch+json"
TABLES = ("labels", "annotations", "allocatable", "capacity", "fieldsV1")
"""Objects whose keys may be anything."""


def role(resources, verbs, group="", **more):
    rules = [{"apiGroups": [group], "resources": resources, "verbs": verbs, **more}]
    return {"kind": "ClusterRole", "metadata": {"name": "role"}, "rules": rules}


def shape(value):
    """The keys and types of a value; of a list, those of its first item; of a table, only types."""
    if isinstance(value, dict):
        return {key: table(inner) if key in TABLES else shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return type(value).__name__


def table(values):
    return {type(value).__name__ for value in values.values()}


def recorded(name):
    return shape(ANSWERS[name]["body"])


async def test_a_node(standin, client, kubectl):
    """A node has the fields of a real one."""
    standin.add_node("n1")
    await kubectl.cordon("n1")
    _, cordoned = await client.ask("GET", f"{NODES}/n1")
    assert shape(cordoned | {"metadata": cordoned["metadata"] | {"managedFields": []}}) == recorded("node")


async def test_managed_fields(standin, client):
    """Whoever applies or updates has an entry in managedFields, of the status as of a subresource."""
    standin.add_node("n1")
    await client.apply(f"{NODES}/n1", {"metadata": {"labels": {"test-label": "x"}}})
    condition = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    path, manager = f"{NODES}/n1/status", "kube-controller-manager"
    _, after = await client.ask("PATCH", path, condition, content_type=STRATEGIC, fieldManager=manager)
    _, applied, updated = after["metadata"]["managedFields"]
    assert shape([applied]) == shape(ANSWERS["managed_fields"]["body"][:1])
    assert applied["fieldsV1"] == {"f:metadata": {"f:labels": {"f:test-label": {}}}}
    assert shape([updated]) == shape(ANSWERS["managed_fields"]["body"][1:])
    assert updated["fieldsV1"] == {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {"f:status": {}}}}}


async def test_pages_of_a_list(standin, client):
    """A limited list says how to go on and how much is left; its items do not say what they are."""
    for number in range(5):
        standin.add_node(f"n{number}")
    _, page = await client.ask("GET", NODES, limit=2)
    assert shape(page | {"items": []}) == recorded("page")
    assert page["metadata"]["remainingItemCount"] == 3
    names = [item["metadata"]["name"] for item in page["items"]]
    while "continue" in page["metadata"]:
        _, page = await client.ask("GET", NODES, **{"limit": 2, "continue": page["metadata"]["continue"]})
        names += [item["metadata"]["name"] for item in page["items"]]
    assert names == ["n0", "n1", "n2", "n3", "n4"]
    assert "kind" not in page["items"][0]


@pytest.mark.parametrize(
    ("selectors", "chosen"),
    [
        ({"fieldSelector": "metadata.name=n1"}, ["n1"]),
        ({"fieldSelector": "spec.unschedulable=true"}, ["n2"]),
        ({"labelSelector": "pool=a"}, ["n0", "n1"]),
        ({"labelSelector": "pool!=a"}, ["n2"]),
        ({"labelSelector": "pool in (a, b),kubernetes.io/hostname notin (n0)"}, ["n1"]),
        ({"labelSelector": "!pool"}, ["n2"]),
        ({"labelSelector": "pool", "fieldSelector": "metadata.name!=n0"}, ["n1"]),
    ],
)
async def test_selectors(standin, client, selectors, chosen):
    """A list has what labels and fields choose."""
    standin.add_node("n0", labels={"pool": "a"})
    standin.add_node("n1", labels={"pool": "a"})
    standin.add_node("n2", unschedulable=True)
    _, page = await client.ask("GET", NODES, **selectors)
    assert [item["metadata"]["name"] for item in page["items"]] == chosen


async def test_pods_of_a_node(standin, client):
    """Pods are found by their node and phase; a field that cannot be selected by is refused."""
    standin.add_pod("p1", "n1", gpus=8)
    standin.add_pod("p2", "n1", phase="Succeeded")
    standin.add_pod("p3", "n2", namespace="work")
    _, page = await client.ask("GET", "/api/v1/pods", fieldSelector="spec.nodeName=")
    assert page["items"] == []
    _, page = await client.ask("GET", "/api/v1/pods", fieldSelector="spec.nodeName=n1,status.phase!=Succeeded")
    assert [pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] for pod in page["items"]] == ["8"]
    _, page = await client.ask("GET", "/api/v1/namespaces/work/pods")
    assert [pod["metadata"]["name"] for pod in page["items"]] == ["p3"]
    code, refused = await client.ask("GET", "/api/v1/pods", fieldSelector="spec.priority=1")
    assert (code, refused["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ({"resources": ["nodes"], "verbs": ["get"]}, 200),
        ({"resources": ["*"], "verbs": ["*"], "group": "*"}, 200),
        ({"resources": ["nodes"], "verbs": ["get"], "resourceNames": ["n1"]}, 200),
        ({"resources": ["nodes"], "verbs": ["get"], "resourceNames": ["n2"]}, 403),
        ({"resources": ["nodes/status"], "verbs": ["get"]}, 403),
        ({"resources": ["nodes"], "verbs": ["list"]}, 403),
        ({"resources": ["nodes"], "verbs": ["get"], "group": "apps"}, 403),
    ],
)
async def test_cluster_roles(standin, client, rules, code):
    """A user may do what a rule of a ClusterRole names, and nothing else."""
    standin.add_node("n1")
    standin.add_user("somebody", role(**rules))
    assert (await client.ask("GET", f"{NODES}/n1", user="somebody"))[0] == code


async def test_a_role_counts_in_its_namespace(standin, client):
    """What a Role allows, it allows in its own namespace only."""
    standin.add_user("somebody", role(["pods"], ["list"]) | {"kind": "Role", "metadata": {"namespace": "work"}})
    assert (await client.ask("GET", "/api/v1/namespaces/work/pods", user="somebody"))[0] == 200
    assert (await client.ask("GET", "/api/v1/namespaces/other/pods", user="somebody"))[0] == 403
    assert (await client.ask("GET", "/api/v1/pods", user="somebody"))[0] == 403


async def test_tokens(standin, client):
    """A token that was replaced is refused; whoever sends none is anonymous, and may ask for the version only."""
    old = standin.service_account(standin.add_user("somebody", role(["nodes"], ["list"])).name) / "token"
    headers = {"Authorization": f"Bearer {old.read_text()}"}
    standin.replace_token("somebody")
    for expected, more in ((401, {"headers": headers}), (403, {})):
        async with client.session.get(f"{standin.url}{NODES}", **more) as response:
            assert response.status == expected
    assert (await client.ask("GET", NODES, user="somebody"))[0] == 200
    async with client.session.get(f"{standin.url}/version") as response:
        assert shape(await response.json()) == recorded("version")


@pytest.mark.parametrize(("verb", "allowed"), [("create", True), ("delete", False)])
async def test_an_access_review(standin, client, verb, allowed):
    """Everybody may ask what they may do."""
    standin.add_user("somebody", role(["deployments"], ["create"], "apps"))
    asked = {"group": "apps", "resource": "deployments", "namespace": "dev", "verb": verb}
    path, review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}}
    code, answer = await client.ask("POST", path, review, user="somebody")
    assert (code, answer["status"]["allowed"]) == (201, allowed)
    assert not allowed or shape(answer) == recorded("allowed")


async def test_deleted_and_created_again(standin, kubectl):
    """A node of the same name is another one after it was deleted."""
    standin.add_node("n1")
    before = await kubectl.get("n1")
    assert shape(await kubectl.delete("n1")) == recorded("deleted")
    await kubectl.create(node("n1"))
    assert (await kubectl.get("n1"))["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_what_is_recorded_has_a_source(path):
    """Each recorded answer says where it was seen, or from what it was made."""
    entries = json.loads(path.read_text()).values()
    assert all(entry["_source"].startswith(("Recorded: https://", "Synthetic, after ")) for entry in entries)


def test_merged_lists():
    """The lists that are merged by a key are those that the OpenAPI schema of Kubernetes says so of."""
    versions = Path(str(files("kubernetes_validate"))) / "kubernetes-json-schema"
    newest = max(versions.glob("v*-local"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)])
    parts = {"metadata": "objectmeta-meta-v1", "spec": "nodespec-v1", "status": "nodestatus-v1"}
    schemas = {section: json.loads((newest / f"{name}.json").read_text()) for section, name in parts.items()}
    assert {
        (section, name): field["x-kubernetes-list-map-keys"][0]
        for section, schema in schemas.items()
        for name, field in schema["properties"].items()
        if field.get("x-kubernetes-list-type") == "map"
    } == MERGE_KEYS
