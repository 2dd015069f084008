"""The API for viewers of the whole fleet, over HTTP."""

import asyncio
import json
import socket
import time

from tests.coordinator.runtime.test_changes import node
from tests.coordinator.web.messages import report
from tests.coordinator.web.test_events import read_events

from muster.model import Health, Verdict
from muster.wire.messages import Presence
from muster_coordinator.model.events import PresenceSeen
from muster_coordinator.model.quarantine_events import NodeForgotten

SNAPSHOT, CHANGES = "/api/v1/snapshot", "/api/v1/changes"


async def next_change_of_nodes(response):
    """Its id, and the change. Frames with nothing but numbers of the fleet may come before it."""
    while True:
        (event,) = await read_events(response, 1)
        assert event["event"] == "change"
        change = json.loads(event["data"])
        if change["nodes"]["name"] or change["gone"]:
            return event["id"], change


async def test_a_snapshot_says_what_the_list_of_nodes_says(compared):
    """In columns."""
    snapshot = await compared.get(SNAPSHOT)
    listed = (await compared.get("/api/v1/nodes"))["items"]
    names, nodes = snapshot["names"], snapshot["nodes"]
    rows = zip(nodes["name"], nodes["health"], nodes["service"], strict=True)
    shown = {name: (names["health"][health], names["service"][service]) for name, health, service in rows}
    assert shown == {node["name"]: (node["health"], node["service"]) for node in listed}
    assert snapshot["fleet"]["health"] == {"HEALTHY": 11, "DEGRADED": 1}
    slow = nodes["name"].index("n7")
    assert names["worst"][nodes["worst"][slow]] == "baseline.outlier"
    assert {len(column) for column in nodes.values()} == {12}


async def test_a_client_that_has_the_present_snapshot_gets_none(fleet):
    """By its ETag, with or without compression; after a change it gets the new one."""
    plain, answer = await fleet.ask("GET", SNAPSHOT, headers={"Accept-Encoding": "identity"})
    packed, same = await fleet.ask("GET", SNAPSHOT, headers={"Accept-Encoding": "gzip"})
    assert ("Content-Encoding" in plain.headers, packed.headers["Content-Encoding"]) == (False, "gzip")
    assert same == answer
    tag = plain.headers["ETag"]
    assert tag == packed.headers["ETag"] == f'W/"{answer["epoch"]}-{answer["version"]}"'
    async with fleet.session.get(fleet.url + SNAPSHOT, headers={"If-None-Match": tag}) as response:
        assert (response.status, await response.read()) == (304, b"")
    await fleet.feed(report("n1", 1, verdict=Verdict.FAIL))
    async with asyncio.timeout(20):
        while (await fleet.ask("GET", SNAPSHOT, headers={"If-None-Match": tag}))[0].status == 304:
            await asyncio.sleep(0.01)


async def test_a_viewer_follows_the_fleet(fleet):
    """From its snapshot on, by the query first and then by the header, as browsers do."""
    snapshot = await fleet.get(SNAPSHOT)
    since = f"{snapshot['epoch']}-{snapshot['version']}"
    async with fleet.session.get(f"{fleet.url}{CHANGES}?since={since}") as response:
        assert response.content_type == "text/event-stream"
        await fleet.feed(report("n1", 1))
        last_id, change = await next_change_of_nodes(response)
        assert change["nodes"]["name"] == ["n1"]
    await fleet.feed(PresenceSeen(Presence(sent_at=time.time(), node="n2", online=False, goodbye=True)))
    await fleet.feed(NodeForgotten(node="n2", by="me", reason="gone"))
    headers = {"Last-Event-ID": last_id}
    async with fleet.session.get(f"{fleet.url}{CHANGES}?since={since}", headers=headers) as response:
        _, change = await next_change_of_nodes(response)
        while not change["gone"]:  # a version between: n2 is offline, and not forgotten yet
            _, change = await next_change_of_nodes(response)
        assert (change["gone"], change["fleet"]["nodes"]) == (["n2"], 2)
    async with fleet.session.get(f"{fleet.url}{CHANGES}?since=1-1") as response:
        (event,) = await read_events(response, 1)
        assert (event["event"], event["id"].partition("-")[0]) == ("reset", str(snapshot["epoch"]))


async def test_a_viewer_that_does_not_read_delays_nobody(api, monkeypatch):
    """The other one gets every version. When the first one reads again, it skips most of them and has the last, too."""
    monkeypatch.setattr("muster_coordinator.views.versioned_nodes.PERIOD_S", 0.0)
    versions, names, loop = 100, [f"n{number}" for number in range(200)], asyncio.get_running_loop()
    with socket.socket() as silent:
        silent.setblocking(False)
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await loop.sock_connect(silent, ("127.0.0.1", int(api.url.rpartition(":")[2])))
        await loop.sock_sendall(silent, f"GET {CHANGES} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        async with asyncio.timeout(20), api.session.get(api.url + CHANGES) as response:
            await read_events(response, 1)
            while api.shell.changes.viewers < 2:
                await asyncio.sleep(0.01)
            for version in range(versions):
                for name in names:
                    api.shell.changes.note(node(name, health=(Health.FAILED, Health.SUSPECT)[version % 2]))
                (last,) = await read_events(response, 1)
            late = b""
            while f"id: {last['id']}\n".encode() not in late:
                late += await loop.sock_recv(silent, 1 << 16)
    assert last["id"].endswith(f"-{versions + 1}")
    assert 1 < late.count(b"event: change") < versions / 2
