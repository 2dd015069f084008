"""The stand-in for the Kubernetes API refuses in the words of real servers."""

import json
from pathlib import Path

import pytest
from benchmarks.kubernetes_standin.faults import Fault

REFUSALS = json.loads((Path(__file__).parent / "recorded" / "refusals.json").read_text())

NODES = "/api/v1/nodes"
STRATEGIC = "application/strategic-merge-patch+json"
OTHER_UID = "98efe7cb-2978-4a0b-842a-1a7bf12c05f8"


def role(resource, verb):
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]
    return {"kind": "ClusterRole", "metadata": {"name": "role"}, "rules": rules}


async def unauthorized(standin, client):
    standin.order(Fault.UNAUTHORIZED)
    return await client.ask("GET", NODES)


async def forbidden_list(standin, client):
    standin.add_user("arn:aws:sts::123456789012:assumed-role/prowler")
    return await client.ask("GET", NODES, user="arn:aws:sts::123456789012:assumed-role/prowler")


async def forbidden_status(standin, client):
    user = standin.add_user("system:serviceaccount:kube-system:default", role("nodes", "*")).name
    path = f"{NODES}/lanjie-worker3/status"
    return await client.ask("PATCH", path, {}, user=user, content_type=STRATEGIC)


async def forbidden_namespaced(standin, client):
    user = standin.add_user("system:node:10.54.252.60", role("events", "list")).name
    return await client.ask("GET", "/apis/events.k8s.io/v1/namespaces/default/events", user=user)


async def not_found(standin, client):
    return await client.ask("GET", f"{NODES}/ranchernode03.c.rancherplayground.internal")


async def modified(standin, client):
    standin.add_node("couchdb")
    change = {"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": True}}
    return await client.ask("PATCH", f"{NODES}/couchdb", change, content_type=STRATEGIC)


async def apply_conflict(standin, client):
    standin.add_node("n1")
    change = {"spec": {"unschedulable": True}}
    await client.ask("PATCH", f"{NODES}/n1", change, content_type=STRATEGIC, fieldManager="kubectl")
    return await client.apply(f"{NODES}/n1", {"spec": {"unschedulable": False}})


async def apply_conflicts(standin, client):
    standin.add_node("n1")
    for manager, change in (
        ("kubectl-label", {"metadata": {"labels": {"pool": "a"}}}),
        ("kubectl", {"spec": {"unschedulable": True}}),
    ):
        await client.ask("PATCH", f"{NODES}/n1", change, content_type=STRATEGIC, fieldManager=manager)
    config = {"metadata": {"labels": {"pool": "b"}}, "spec": {"unschedulable": False}}
    return await client.apply(f"{NODES}/n1", config)


async def uid_without_object(standin, client):
    return await client.apply(f"{NODES}/n1", {"metadata": {"uid": OTHER_UID}})


async def other_uid(standin, client):
    standin.add_node("n1")
    return await client.apply(f"{NODES}/n1", {"metadata": {"uid": OTHER_UID}})


async def failed_test(standin, client):
    standin.add_node("n1")
    operations = [{"op": "test", "path": "/spec/unschedulable", "value": True}]
    return await client.ask("PATCH", f"{NODES}/n1", operations, content_type="application/json-patch+json")


async def nameless_apply(standin, client):
    return await client.apply(f"{NODES}/n1", {}, manager="")


async def too_many_requests(standin, client):
    standin.order(Fault.TOO_MANY)
    return await client.ask("GET", NODES)


async def internal_error(standin, client):
    standin.order(Fault.INTERNAL)
    return await client.ask("GET", NODES)


SITUATIONS = (
    unauthorized,
    forbidden_list,
    forbidden_status,
    forbidden_namespaced,
    not_found,
    modified,
    apply_conflict,
    apply_conflicts,
    uid_without_object,
    other_uid,
    failed_test,
    nameless_apply,
    too_many_requests,
    internal_error,
)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
async def test_it_refuses_in_the_words_of_a_server(standin, client, situation):
    """The HTTP status and the whole body are those of a real server in the same situation."""
    code, body = await situation(standin, client)
    recorded = REFUSALS[situation.__name__]
    assert (code, body) == (recorded["code"], recorded["body"])


def test_every_recorded_refusal_is_met():
    """Each recorded refusal has a situation."""
    assert {situation.__name__ for situation in SITUATIONS} == set(REFUSALS)
