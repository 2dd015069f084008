"""The leader's Lease at a stand-in for the API server: at most one coordinator holds it, and knows until when."""

import asyncio

import pytest
from benchmarks.kubernetes_standin.faults import Fault, Order

from muster.errors import Unavailable
from muster.leader_lock import LeadershipLost
from muster_plugins.schedulers.kubernetes import lease_lock, rbac
from muster_plugins.schedulers.kubernetes.calls import (
    CREATE_LEASE,
    OF_ONE_OF_SEVERAL_COORDINATORS,
    PATCH_LEASE,
    READ_LEASE,
)
from muster_plugins.schedulers.kubernetes.lease_lock import LeaseLock
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings

ACCOUNT = "system:serviceaccount:muster:muster-coordinator"
PATH = "/apis/coordination.k8s.io/v1/namespaces/muster/leases/muster-coordinator"


@pytest.fixture(autouse=True)
def short_times(monkeypatch):
    """A Lease lasts two seconds."""
    brief = {"RENEW_S": 0.1, "MARGIN_S": 0.3, "LOOK_S": 0.02, "AGAIN_S": 0.05, "ANSWERED_WITHIN_S": 0.8}
    for name, seconds in {"DURATION_S": 2, **brief}.items():
        monkeypatch.setattr(lease_lock, name, seconds)


@pytest.fixture
def settings(standin):
    """Those of a pod whose account has the rights that are generated."""
    roles = [manifest for manifest in rbac.standby_manifests() if manifest["kind"] in {"Role", "ClusterRole"}]
    standin.add_user(ACCOUNT, *roles)
    return KubernetesSettings(api=standin.url, service_account=standin.service_account(ACCOUNT))


@pytest.fixture
async def locks(settings):
    """Makes locks of coordinators with these URLs."""
    made: list[LeaseLock] = []

    def make(url="http://a:1"):
        made.append(LeaseLock(settings, url))
        return made[-1]

    yield make
    for lock in made:
        await lock.release()


async def tried(lock):
    """The result of the next look."""
    await asyncio.sleep(2 * lease_lock.LOOK_S)
    return await lock.try_acquire()


async def acquired(lock, within_s=20.0):
    """Waits until the lock is taken."""
    async with asyncio.timeout(within_s):
        while not await tried(lock):
            pass


async def spec(client):
    status, lease = await client.ask("GET", PATH)
    assert status == 200
    return lease["spec"]


async def test_one_leads_until_it_steps_down(locks, client):
    """Then another one does at once. The standby knows where the leader is."""
    first, second = locks("http://a:1"), locks("http://b:2")
    assert [await tried(first), await tried(second)] == [True, False]
    assert second.leader_url == "http://a:1"
    assert (await spec(client))["leaseDurationSeconds"] == 2
    await first.release()
    assert "holderIdentity" not in await spec(client)
    await acquired(second, 1.5)
    assert (await spec(client))["leaseTransitions"] == 1
    assert not await tried(first)
    assert first.leader_url == "http://b:2"


async def test_who_keeps_the_lock_is_certain_of_it(locks):
    """For longer than the Lease lasts without being renewed."""
    lock, other = locks(), locks()
    await acquired(lock)
    keeping = asyncio.create_task(lock.keep())
    for _ in range(12):
        await asyncio.sleep(0.2)
        async with asyncio.timeout(0.2):
            await lock.confirm()
        assert not await tried(other)
    keeping.cancel()


async def test_a_leader_that_says_nothing_loses_the_lock(locks):
    """As one that is paused: it is uncertain before another one leads, and finds out that it does not lead."""
    paused, other = locks(), locks()
    await acquired(paused)
    assert not await tried(other)
    async with asyncio.timeout(0.2):
        await paused.confirm()
    was_certain = True
    while not await tried(other):
        was_certain = paused._certainty.left_s > 0
    assert not was_certain
    confirming = asyncio.create_task(paused.confirm())
    with pytest.raises(LeadershipLost, match="stood still"):
        await asyncio.wait_for(paused.keep(), 5)
    assert not confirming.done()
    confirming.cancel()


async def test_one_of_many_is_the_first(locks):
    """The server takes one of several writes about the same version."""
    many = [locks() for _ in range(8)]
    assert sum(await asyncio.gather(*(tried(lock) for lock in many))) == 1
    await asyncio.sleep(2.1)
    assert sum(await asyncio.gather(*(tried(lock) for lock in many))) <= 1


@pytest.mark.parametrize(
    "fault", [Fault.DROPPED_AFTER, Fault.DROPPED_BEFORE, Fault.SLOW, Fault.INTERNAL, Fault.CONFLICT]
)
async def test_a_renewal_whose_answer_is_lost_is_repeated(locks, standin, fault):
    """Whether it had its effect or not."""
    lock = locks()
    await acquired(lock)
    keeping = asyncio.create_task(lock.keep())
    standin.orders.open.append(Order(fault, verb="patch", seconds=1.2))
    await asyncio.sleep(2.5)
    assert not keeping.done()
    assert lock._certainty.left_s > 0
    keeping.cancel()


async def test_a_first_write_whose_answer_is_lost_is_its_own(locks, standin):
    """The next look finds its own name."""
    lock, other = locks(), locks()
    await acquired(other)
    assert not await tried(lock)
    await other.release()
    standin.orders.open.append(Order(Fault.DROPPED_AFTER, verb="patch"))
    assert not await tried(lock)
    assert not await tried(other)
    await acquired(lock, 1.5)


async def test_a_server_that_is_away_for_long_makes_nobody_lead(locks, standin):
    """The leader steps down in time, and somebody leads when the server is back."""
    lock, other = locks(), locks()
    await acquired(lock)
    assert not await tried(other)
    keeping = asyncio.create_task(lock.keep())
    standin.orders.open.append(Order(Fault.UNAVAILABLE, times=10_000))
    with pytest.raises(LeadershipLost, match="could not be renewed"):
        await asyncio.wait_for(keeping, 10)
    assert not await tried(other)
    assert other.leader_url is None
    standin.orders.open.clear()
    await acquired(other)


@pytest.mark.parametrize(
    ("change", "words"),
    [("deleted", "somebody has deleted"), ("taken", "another coordinator holds"), ("annotated", None)],
)
async def test_a_lease_that_somebody_changes(locks, client, change, words):
    """An administrator may delete it, or write somebody else into it. Anything else of it is theirs."""
    lock = locks()
    await acquired(lock)
    keeping = asyncio.create_task(lock.keep())
    if change == "deleted":
        await client.ask("DELETE", PATH)
    else:
        new = {"spec": {"holderIdentity": "eve"}} if change == "taken" else {"metadata": {"annotations": {"a": "b"}}}
        await client.ask("PATCH", PATH, new, content_type="application/merge-patch+json")
    if words is None:
        await asyncio.sleep(2.5)
        assert not keeping.done()
        assert lock._certainty.left_s > 0
        keeping.cancel()
        return
    with pytest.raises(LeadershipLost, match=words):
        await asyncio.wait_for(keeping, 5)


@pytest.mark.parametrize("missing", OF_ONE_OF_SEVERAL_COORDINATORS, ids=str)
async def test_a_right_that_is_missing_is_named(standin, client, monkeypatch, missing):
    """At the start: without it, nobody would ever lead."""
    allowed = tuple(call for call in OF_ONE_OF_SEVERAL_COORDINATORS if call is not missing)
    monkeypatch.setattr(rbac, "OF_ONE_OF_SEVERAL_COORDINATORS", allowed)
    roles = [manifest for manifest in rbac.standby_manifests() if manifest["kind"] == "Role"]
    standin.add_user(ACCOUNT, *roles)
    lock = LeaseLock(
        KubernetesSettings(api=standin.url, service_account=standin.service_account(ACCOUNT)), "http://a:1"
    )
    if missing is PATCH_LEASE:
        body = {"metadata": {"name": "muster-coordinator"}, "spec": {}}
        await client.ask("POST", PATH.rpartition("/")[0], body)
    words = f"grant it by RBAC: {missing}"
    with pytest.raises(Unavailable, match=words):
        await lock.try_acquire()
    await lock.release()
    assert missing in (READ_LEASE, CREATE_LEASE, PATCH_LEASE)
