"""The stand-in for the Kubernetes API breaks as it is told to, and its watches tell what happens."""

import asyncio
import json
import time
from pathlib import Path

import aiohttp
import pytest
from benchmarks.kubernetes_standin.faults import Fault
from benchmarks.kubernetes_standin.kubectl import Kubectl

ANSWERS = json.loads((Path(__file__).parent / "recorded" / "answers.json").read_text())
NODES = "/api/v1/nodes"
N1 = "/api/v1/nodes/n1"
MERGE = "application/merge-patch+json"
LABELLED = {"metadata": {"labels": {"pool": "a"}}}
PATIENCE_S = 20


@pytest.fixture(autouse=True)
def n1(standin):
    standin.add_node("n1")


async def label(client):
    return await client.ask("PATCH", N1, LABELLED, content_type=MERGE)


def labelled(standin):
    return "pool" in standin.node("n1")["metadata"]["labels"]


@pytest.mark.parametrize(
    ("fault", "code", "retry_after"),
    [
        (Fault.CONFLICT, 409, None),
        (Fault.TOO_MANY, 429, "7"),
        (Fault.INTERNAL, 500, None),
        (Fault.UNAVAILABLE, 503, "7"),
        (Fault.UNAUTHORIZED, 401, None),
        (Fault.GONE, 410, None),
    ],
)
async def test_ordered_refusals(standin, client, fault, code, retry_after):
    """As many requests as ordered are refused and without effect; the next one is not."""
    standin.order(fault, times=2, seconds=7)
    for _ in range(2):
        async with client.open("PATCH", N1, LABELLED, content_type=MERGE) as response:
            assert (response.status, response.headers.get("Retry-After")) == (code, retry_after)
    assert not labelled(standin)
    assert (await label(client))[0] == 200


async def test_orders_for_some_requests(standin, client):
    """An order is about the verb and the paths that it names."""
    standin.order(Fault.INTERNAL, verb="patch", path="*/n1")
    assert (await client.ask("GET", N1))[0] == 200
    assert (await client.ask("PATCH", f"{NODES}/n2", LABELLED, content_type=MERGE))[0] == 404
    assert (await label(client))[0] == 500


@pytest.mark.parametrize(("fault", "effect"), [(Fault.DROPPED_BEFORE, False), (Fault.DROPPED_AFTER, True)])
async def test_dropped_connections(standin, client, fault, effect):
    """A connection is dropped before or after the request has had its effect, and the record has no answer."""
    standin.order(fault)
    with pytest.raises(aiohttp.ClientConnectionError):
        await label(client)
    assert labelled(standin) is effect
    assert standin.requests[-1].code is None


async def test_a_slow_answer(standin, client):
    """A slow answer comes late, to a request that has had its effect at once."""
    standin.order(Fault.SLOW, seconds=3600)
    written = asyncio.Event()
    standin.store.watchers.add(lambda _: written.set())
    answer = asyncio.create_task(label(client))
    async with asyncio.timeout(PATIENCE_S):
        await written.wait()
    assert labelled(standin)
    assert not answer.done()
    answer.cancel()


async def test_a_slow_answer_does_not_outlive_its_connection(standin, client):
    """Who hangs up is not served any more, so nobody is left over when the server ends."""
    standin.order(Fault.SLOW, seconds=3600)
    asked = asyncio.Event()
    standin.store.watchers.add(lambda _: asked.set())
    answer = asyncio.create_task(label(client))
    async with asyncio.timeout(PATIENCE_S):
        await asked.wait()
        serving = [task for task in asyncio.all_tasks() if "RequestHandler" in str(task.get_coro())]
        answer.cancel()
        await asyncio.wait(serving)
    assert serving


async def test_garbage(standin, client):
    """An answer of garbage is no JSON."""
    standin.order(Fault.GARBAGE)
    with pytest.raises(json.JSONDecodeError):
        await client.ask("GET", NODES)


async def test_a_server_that_is_down(standin, client):
    """While it is down nobody can connect; after that all is as before, at the same address."""
    await standin.stop()
    with pytest.raises(aiohttp.ClientConnectionError):
        await label(client)
    await standin.start()
    assert (await label(client))[0] == 200


async def test_the_record(standin, client):
    """Each request is recorded with its time, verb, path, query, user, body and answer, without any token."""
    before = time.monotonic()
    await client.ask("PATCH", N1, LABELLED, content_type=MERGE, fieldManager="muster")
    record = standin.requests[-1]
    assert before < record.at < time.monotonic()
    assert (record.verb, record.path, record.query) == ("patch", N1, {"fieldManager": "muster"})
    assert (record.user, record.body, record.code) == ("kubernetes-admin", LABELLED, 200)


class Watch:
    """The lines of a watch, one after the other."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self):
        """The next event, or None when the watch is over."""
        async with asyncio.timeout(PATIENCE_S):
            line = await self._response.content.readline()
        return json.loads(line) if line else None

    async def seen(self):
        event = await self.next()
        return event["type"], event["object"]["metadata"]["name"]


async def test_a_watch_from_now(standin, client, kubectl):
    """A watch from a version tells what happens after it, one without a version first what is there."""
    _, page = await client.ask("GET", NODES)
    await kubectl.label("n1", "pool", "a")
    start = {"watch": "true", "resourceVersion": page["metadata"]["resourceVersion"]}
    async with client.open("GET", NODES, **start) as late, client.open("GET", NODES, watch="1") as fresh:
        watch, other = Watch(late), Watch(fresh)
        assert await watch.seen() == ("MODIFIED", "n1")
        assert await other.seen() == ("ADDED", "n1")
        standin.add_node("n2")
        assert [await watch.seen(), await other.seen()] == [("ADDED", "n2")] * 2
        await kubectl.delete("n2")
        assert [await watch.seen(), await other.seen()] == [("DELETED", "n2")] * 2


async def test_a_watch_of_some(standin, client, kubectl):
    """For a watch of some nodes, one that comes to have the label is added and one that loses it deleted."""
    async with client.open("GET", NODES, watch="true", labelSelector="pool=a") as response:
        watch = Watch(response)
        await kubectl.label("n1", "pool", "a")
        assert await watch.seen() == ("ADDED", "n1")
        await kubectl.label("n1", "other", "x")
        assert await watch.seen() == ("MODIFIED", "n1")
        await kubectl.label("n1", "pool", "b")
        assert await watch.seen() == ("DELETED", "n1")


async def test_bookmarks(standin, client):
    """A silent watch that asks for bookmarks gets the version from which it could go on."""
    standin.watches.bookmark_every_s = 0.01
    start = {"watch": "true", "resourceVersion": str(standin.store.version), "allowWatchBookmarks": "true"}
    async with client.open("GET", NODES, **start) as response:
        bookmark = await Watch(response).next()
    assert bookmark["object"]["metadata"] == {"resourceVersion": str(standin.store.version)}
    assert bookmark["object"].keys() == ANSWERS["bookmark"]["body"]["object"].keys()
    assert bookmark["type"] == "BOOKMARK"


async def test_a_watch_that_has_had_its_time(client):
    """A watch ends by itself after the time that it asked for."""
    async with client.open("GET", NODES, watch="true", resourceVersion="0", timeoutSeconds="0.01") as response:
        watch = Watch(response)
        assert await watch.seen() == ("ADDED", "n1")
        assert await watch.next() is None


def is_expired(event):
    """Whether an event is the one of a watch that cannot go on, whatever versions it names."""
    expired = ANSWERS["expired"]["body"]
    refused = event["object"]
    assert refused["message"].startswith("too old resource version: ")
    return event == {**expired, "object": expired["object"] | {"message": refused["message"]}}


async def test_a_watch_from_too_long_ago(standin, client):
    """A watch and a list from what is forgotten are answered with 410: the watch by its only event."""
    standin.add_node("n2")
    _, page = await client.ask("GET", NODES, limit=1)
    standin.store.forget()
    start = page["metadata"]["resourceVersion"]
    async with client.open("GET", NODES, watch="true", resourceVersion=start) as response:
        watch = Watch(response)
        assert is_expired(await watch.next())
        assert await watch.next() is None
    assert (await client.ask("GET", NODES, **{"continue": page["metadata"]["continue"]}))[0] == 410


@pytest.mark.parametrize("expired", [True, False])
async def test_ended_watches(standin, client, expired):
    """Watches that go on are ended to order, with the event that says 410 or without a word."""
    async with client.open("GET", NODES, watch="true") as response:
        watch = Watch(response)
        await watch.next()
        standin.watches.end(expired=expired)
        assert not expired or is_expired(await watch.next())
        assert await watch.next() is None


async def test_a_process_of_its_own(new_standin_process):
    """In a process of its own it serves, breaks and tells as it does in the test's."""
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    with new_standin_process(nodes=2) as child:
        files = child.add_user("system:serviceaccount:muster:coordinator", {"kind": "ClusterRole", "rules": rules})
        async with Kubectl(child.kubeconfig) as admin, Kubectl(files.kubeconfig) as reader:
            child.order(Fault.CONFLICT, verb="patch")
            for operator, status in ((admin, 409), (reader, 403)):
                with pytest.raises(aiohttp.ClientResponseError) as refused:
                    await operator.cordon("node-00001")
                assert refused.value.status == status
            await admin.cordon("node-00001")
            assert (await reader.get("node-00001"))["spec"]["unschedulable"]
        patches = [request for request in child.requests() if request.verb == "patch"]
    assert [request.code for request in patches] == [409, 403, 200]
    assert {path.name for path in files.service_account.iterdir()} == {"token", "ca.crt", "namespace"}
