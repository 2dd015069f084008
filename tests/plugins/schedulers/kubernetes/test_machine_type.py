"""An agent in Kubernetes reads the machine type from the labels of its own node."""

import asyncio

import pytest

from muster.config import Config, Settings
from muster_plugins.schedulers.kubernetes import machine_type, rbac
from muster_plugins.schedulers.kubernetes.plugin import muster_machine_types

ACCOUNT = "system:serviceaccount:muster:muster-agent"
LABEL = "node.kubernetes.io/instance-type"


@pytest.fixture
def ask(standin, monkeypatch):
    """What the plugin of the agent on n1 says, with the permissions that are generated. One agent asks all the time."""
    monkeypatch.setattr(machine_type, "PAUSE_S", 0.0)
    role, *_ = rbac.agent_manifests()
    standin.add_user(ACCOUNT, role)
    account = {"api": standin.url, "service_account": str(standin.service_account(ACCOUNT))}

    def agent(**table):
        settings = {"node": "n1", "plugins": {"kubernetes": {"enabled": True, **account, **table}}}
        return Config(Settings.model_validate(settings))

    usual = agent()

    async def make(**table):
        config = agent(**table) if table else usual
        # In a thread, as the stand-in answers from this one.
        found = await asyncio.to_thread(lambda: [*muster_machine_types(config)])
        return [(each.name, each.source, each.said_by) for each in found]

    return make


async def test_the_label_of_the_own_node_is_read(standin, kubectl, ask):
    """With the right that the shipped manifests grant, and once: a node keeps its machine type."""
    standin.add_node("n1")
    await kubectl.label("n1", LABEL, "a4-highgpu-8g")
    assert await ask() == [("a4-highgpu-8g", "label", LABEL)]
    await kubectl.label("n1", LABEL, "other")
    assert await ask() == [("a4-highgpu-8g", "label", LABEL)]


async def test_a_label_that_comes_later_is_found(standin, kubectl, ask):
    """A cloud's controller sets it some seconds after the node is registered."""
    assert await ask() == []
    standin.add_node("n1", labels={LABEL: ""})
    assert await ask() == []
    await kubectl.label("n1", LABEL, "a3-ultragpu-8g")
    assert await ask() == [("a3-ultragpu-8g", "label", LABEL)]


async def test_a_node_without_the_label_is_not_asked_for_at_every_turn(standin, kubectl, ask, monkeypatch):
    """Ten thousand agents would be a load for the API server."""
    monkeypatch.setattr(machine_type, "PAUSE_S", 600.0)
    standin.add_node("n1", labels={LABEL: ""})
    assert await ask() == []
    await kubectl.label("n1", LABEL, "a3-ultragpu-8g")
    assert await ask() == []


async def test_outside_of_kubernetes_nobody_is_asked(ask):
    """Nor where the directory of the service account is empty, which says nothing about the node."""
    assert await ask(enabled=False) == []
    assert await ask(service_account="/nowhere") == []
