"""Every change that is made through the API or the pages is in the audit log, with its author."""

import time
from typing import Any

import pytest
from tests.coordinator.web.test_roles import OPERATE, PROXY, bearer, client, logged_in, user

from muster.wire.messages import Presence
from muster_coordinator.model.events import PresenceSeen
from muster_coordinator.model.quarantine import FleetState, MassEvent
from muster_coordinator.web import operations
from muster_coordinator.web.guard import PLANS, Access, required_right
from muster_coordinator.web.proxies import TrustedProxies
from muster_coordinator.web.sessions import Right

AUDIT = "/api/v1/audit"
SAME = {"Sec-Fetch-Site": "same-origin"}
BY = {"by": "bob"}
SAID = BY | {"reason": "a fan"}
ROW = {"check": "gemm", "metric": "rpm", "fail_below": 5.0, "source": "a test"}
SWEEP = {"check": "gemm", "nodes": ["n1", "n2"]}
OF_ROW = {"check": "gemm", "metric": "rpm"}


@pytest.fixture
def access():
    return Access(OPERATE, Right.PROBE, "of http.token_file", proxies=TrustedProxies.of([PROXY]))


async def listed(session, fleet, **query):
    """The entries, the latest first."""
    async with session.get(fleet.url + AUDIT, params=query, headers=bearer(OPERATE)) as response:
        assert response.status == 200
        return (await response.json())["items"]


def freeze(fleet):
    """As when many nodes have the same fault."""
    event = MassEvent(cause="kernel_log.xid 79", nodes=6, since=time.time())
    fleet.shell.pipeline.fleet._quarantine._fleet = FleetState(mass_events=(event,))


def changes(sweeps: list[int], baseline: str) -> list[tuple[str, str, str, Any, dict[str, Any]]]:
    """Method, route, action, subject (`...` if only the answer names it), and what is sent."""
    return [
        ("POST", "/api/v1/nodes/{node}/hold", "hold_node", "n1", {"json": SAID}),
        ("POST", "/api/v1/nodes/{node}/release", "release_node", "n1", {"json": SAID}),
        ("POST", "/api/v1/nodes/{node}/runs", "start_run", "n1", {"json": {"check": "gemm", "by": "bob"}}),
        ("POST", "/api/v1/nodes/{node}/forget", "forget_node", "n5", {"json": SAID}),
        ("POST", "/api/v1/quarantine/unfreeze", "lift_freeze", None, {"json": SAID}),
        ("POST", "/api/v1/sweeps", "start_sweep", ..., {"json": SWEEP | BY}),
        ("DELETE", "/api/v1/sweeps/{sweep}", "abort_sweep", sweeps[0], {"params": BY}),
        ("PUT", "/api/v1/references", "set_reference", '["gemm", "rpm", {}]', {"json": ROW | BY}),
        ("DELETE", "/api/v1/references", "remove_reference", '["gemm", "rpm", {}]', {"params": OF_ROW | BY}),
        ("DELETE", "/api/v1/baselines/{baseline}", "reset_baseline", baseline, {"params": BY}),
        ("POST", "/nodes/{node}/hold", "hold_node", "n2", {"data": SAID}),
        ("POST", "/nodes/{node}/release", "release_node", "n2", {"data": SAID}),
        ("POST", "/nodes/{node}/runs", "start_run", "n2", {"data": {"check": "gemm"}}),
        ("POST", "/quarantine/unfreeze", "lift_freeze", None, {"data": SAID}),
        ("POST", "/sweeps", "start_sweep", ..., {"data": {"check": "gemm", "select": "n1"}}),
        ("POST", "/sweeps/{sweep}/abort", "abort_sweep", sweeps[1], {"data": {}}),
    ]


async def test_every_change_has_an_entry(compared):
    """Each route that changes something leaves one; a route that this test does not know fails it."""
    await compared.feed(PresenceSeen(Presence(sent_at=time.time(), node="n5", online=False, goodbye=True)))
    async with client() as session:

        async def change(method, path, **options):
            async with session.request(
                method, compared.url + path, headers=bearer(OPERATE) | SAME, allow_redirects=False, **options
            ) as response:
                assert response.status < 400, (path, await response.text())
                return await response.json() if "json" in response.content_type else {}

        async def sweep():
            return (await change("POST", "/api/v1/sweeps", json=SWEEP))["id"]

        async with session.get(compared.url + "/api/v1/baselines", headers=bearer(OPERATE)) as response:
            (baseline,) = (await response.json())["items"]
        wanted = changes([await sweep(), await sweep()], baseline["id"])
        changing = {
            (route.method, route.path)
            for route in compared.shell.routes(compared.store)
            if required_right(route.method, route.path) is Right.CHANGE and route.path not in PLANS
        }
        assert {(method, path) for method, path, *_ in wanted} == changing
        for method, path, action, subject, options in wanted:
            if action == "lift_freeze":
                freeze(compared)
            before = await listed(session, compared)
            await change(method, path.format(node=subject, sweep=subject, baseline=subject), **options)
            entry, *rest = await listed(session, compared)
            assert rest == before, path
            assert entry["action"] == action
            assert subject is ... or entry["subject"] == subject
            said = options.get("json") or options.get("data") or options.get("params") or {}
            assert (entry["by"], entry["reason"]) == (said.get("by"), said.get("reason"))


async def test_an_entry_says_from_where_and_with_what(fleet):
    """The other end of the connection, what was written about those before it, and how the name is known."""
    async with client() as elsewhere, client(PROXY) as proxy:
        session = await logged_in(elsewhere, fleet, OPERATE, name="ann")
        for sender, headers in (
            (elsewhere, bearer(OPERATE)),
            (elsewhere, session | SAME),
            (proxy, user("eve@example.org", "operate") | SAME | {"X-Forwarded-For": "203.0.113.9"}),
            (elsewhere, bearer(OPERATE) | {"X-Forwarded-For": "x" * 5_000}),
        ):
            async with sender.post(fleet.url + "/api/v1/nodes/n1/hold", headers=headers, json=SAID) as response:
                assert response.status == 200
        found = await listed(elsewhere, fleet, subject="n1")
        shown = [(it["by"], it["credential"], it["address"], it["forwarded_for"]) for it in found]
        assert shown == [
            ("bob", "token", "127.0.0.1", "x" * 200),
            ("eve@example.org", "proxy", PROXY, "203.0.113.9"),
            ("ann", "session", "127.0.0.1", None),
            ("bob", "token", "127.0.0.1", None),
        ]
        assert await listed(elsewhere, fleet, subject="n2") == []


async def test_what_is_refused_has_no_entry(fleet):
    """Nothing was changed."""
    async with client() as session:
        for path, said, status in (
            ("/api/v1/nodes/n1/runs", {"check": "nothing"}, 422),
            ("/api/v1/nodes/n9/hold", SAID, 404),
            ("/api/v1/nodes/n1/forget", SAID, 422),
        ):
            async with session.post(fleet.url + path, headers=bearer(OPERATE), json=said) as response:
                assert response.status == status, await response.text()
        assert await listed(session, fleet) == []


@pytest.mark.parametrize(("most", "recorded"), [(2, ["n1", "n2"]), (1, 2)])
async def test_a_large_sweep_is_not_written_down_twice(fleet, monkeypatch, most, recorded):
    """The entry says how many nodes there are; the sweep has their names."""
    monkeypatch.setattr(operations, "MOST_NODES", most)
    async with client() as session:
        async with session.post(fleet.url + "/api/v1/sweeps", headers=bearer(OPERATE), json=SWEEP) as response:
            sweep = await response.json()
        (entry,) = await listed(session, fleet, subject=sweep["id"])
    assert entry["details"] == {"check": "gemm", "nodes": recorded}
    assert sweep["nodes"] == ["n1", "n2"]
