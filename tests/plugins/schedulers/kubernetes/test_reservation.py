"""An agent keeps new pods off its own node while it is tested, by a taint."""

import asyncio

import pytest
from benchmarks.kubernetes_standin.faults import Fault

from muster.config import Config, Settings
from muster_plugins.schedulers.kubernetes import rbac
from muster_plugins.schedulers.kubernetes.api import Unanswered
from muster_plugins.schedulers.kubernetes.calls import OF_AN_AGENT_THAT_RESERVES
from muster_plugins.schedulers.kubernetes.plugin import muster_reservations
from muster_plugins.schedulers.kubernetes.reservation import ReservedByOthers

ACCOUNT = "system:serviceaccount:muster:muster-agent"
OURS = {"key": "muster.dev/testing", "effect": "NoSchedule", "value": "east"}


@pytest.fixture
def new_reservation(standin):
    """Makes the reservation of the agent on n1, with the permissions that are generated."""
    standin.add_node("n1")

    def make(**table):
        role, *_ = rbac.reservation_manifests()
        standin.add_user(ACCOUNT, role)
        account = {"api": standin.url, "service_account": str(standin.service_account(ACCOUNT))}
        settings = {"fleet": "east", "node": "n1", "plugins": {"kubernetes": {"reserve": True, **account, **table}}}
        (reservation,) = muster_reservations(Config(Settings.model_validate(settings)))
        return reservation

    return make


def taints(standin):
    return standin.node("n1")["spec"].get("taints", [])


async def reserve(reservation):
    """In a thread, as the stand-in answers from this one."""
    await asyncio.to_thread(reservation.reserve, "collective in group 5f1c")


async def release(reservation):
    await asyncio.to_thread(reservation.release)


async def test_a_node_has_a_taint_while_it_is_reserved(standin, kubectl, new_reservation):
    """Beside those of others, however often it is put there and taken off."""
    reservation = new_reservation()
    await kubectl.taint("n1", "example.com/other", "x", "NoExecute")
    (other,) = taints(standin)
    for _ in range(2):
        await reserve(reservation)
        assert taints(standin) == [other, OURS]
    for _ in range(2):
        await release(reservation)
        assert taints(standin) == [other]


async def test_what_a_killed_agent_left_is_taken_over(standin, new_reservation):
    """By the next one."""
    await reserve(new_reservation())
    await reserve(new_reservation())
    await release(new_reservation())
    assert taints(standin) == []


async def test_another_s_taint_is_respected(standin, kubectl, new_reservation):
    """Whoever wants to keep muster off puts it there with a value of theirs."""
    reservation = new_reservation()
    await kubectl.taint("n1", "muster.dev/testing", "maintenance", "NoSchedule")
    with pytest.raises(
        ReservedByOthers, match=r"node n1 has the taint muster\.dev/testing=maintenance:NoSchedule of somebody else"
    ):
        await reserve(reservation)
    await release(reservation)
    assert [taint["value"] for taint in taints(standin)] == ["maintenance"]


async def test_a_node_that_has_changed_is_looked_at_again(standin, new_reservation):
    """Once."""
    reservation = new_reservation()
    standin.order(Fault.CONFLICT, verb="patch")
    await reserve(reservation)
    assert taints(standin) == [OURS]
    standin.order(Fault.CONFLICT, verb="patch", times=2)
    with pytest.raises(Unanswered, match="HTTP 409"):
        await release(reservation)


@pytest.mark.parametrize("missing", OF_AN_AGENT_THAT_RESERVES, ids=str)
async def test_a_missing_right_is_named(new_reservation, monkeypatch, missing):
    """By the words of the server."""
    rest = [call for call in OF_AN_AGENT_THAT_RESERVES if call is not missing]
    monkeypatch.setattr(rbac, "OF_AN_AGENT_THAT_RESERVES", rest)
    with pytest.raises(Unanswered, match=f'User "{ACCOUNT}" cannot {missing.verb} resource "nodes"'):
        await reserve(new_reservation())


async def test_an_answer_that_is_none_is_a_failure(standin, new_reservation):
    """And the node is not taken for reserved."""
    reservation = new_reservation()
    standin.order(Fault.GARBAGE, verb="get")
    with pytest.raises(Unanswered, match="not a node"):
        await reserve(reservation)


async def test_a_node_of_another_name_is_named(new_reservation):
    """As the API server knows it by another."""
    with pytest.raises(Unanswered, match='nodes "n7" not found'):
        await reserve(new_reservation(node="n7"))


def test_it_is_off_unless_it_is_asked_for():
    """It needs the right to change nodes."""
    settings = Settings.model_validate({"plugins": {"kubernetes": {"enabled": True}}})
    assert muster_reservations(Config(settings)) == []
