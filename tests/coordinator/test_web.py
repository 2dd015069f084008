import asyncio
import io
import json
import time

import pytest
from aiohttp import ClientSession, ClientTimeout

from muster.check import CheckInfo, Needs, Scope, Worse
from muster.config import Config, HttpSettings, Settings
from muster.errors import SettingsError, Unavailable
from muster.model import Inventory, Json, Run, Verdict
from muster.plugins import Plugins
from muster.wire.messages import InventoryReport, Presence, Report
from muster_coordinator.acting import Acting
from muster_coordinator.daemon import Shell
from muster_coordinator.events import Announce, InventorySeen, PresenceSeen, ReportSeen
from muster_coordinator.fleet import Fleet
from muster_coordinator.link import Link
from muster_coordinator.notices import Notices
from muster_coordinator.pipeline import Pipeline
from muster_coordinator.store import Store
from muster_coordinator.stream import WAITING, Stream
from muster_coordinator.surveying import Surveying
from muster_coordinator.thinning import Thinning
from muster_coordinator.web.guard import read_token
from muster_coordinator.web.server import MAX_BODY_BYTES, application, listen, serving

TOKEN = "a-secret"
SWEEP = {"check": "collective", "strategy": "pairs"}


class Api:
    """The API of a coordinator whose broker is away, over a real socket."""

    def __init__(self, session, url, shell, store):
        self.session = session
        self.url = url
        self.shell = shell
        self.store = store

    async def ask(self, method, path, **options):
        async with self.session.request(method, self.url + path, **options) as response:
            text = await response.text()
            if response.status >= 400:
                assert response.content_type == "application/problem+json", text
                problem = json.loads(text)
                assert set(problem) == {"type", "title", "status", "detail"}
                assert problem["status"] == response.status
            return response, json.loads(text) if "json" in response.content_type else text

    async def get(self, path):
        response, answer = await self.ask("GET", path)
        assert response.status == 200, answer
        return answer

    async def refused(self, status, method, path, **options):
        response, problem = await self.ask(method, path, **options)
        assert response.status == status, problem
        return problem["detail"]

    async def feed(self, event):
        await self.shell.pipeline.feed(event).wait()


@pytest.fixture
def token():
    return None


@pytest.fixture
async def api(tmp_path, token):
    settings = Settings(data_dir=tmp_path)
    store = await Store.open(settings)
    pipeline = Pipeline(Fleet(name="default", epoch=3), store)
    pipeline.fleet.restore(await store.saved(), pipeline.clock())
    link = Link(settings, broker_url="mqtt://127.0.0.1:1", api_url="", epoch=3, deliver=pipeline.take)
    thinning = Thinning(store.database, settings.store, pipeline.clock, pipeline.feed)
    plugins = Plugins(Config(settings))
    acting, surveying = Acting(plugins, pipeline.feed), Surveying(plugins, 3600.0, pipeline.take)
    shell = Shell(pipeline, link, Stream(3), Notices(plugins), acting, surveying, thinning)
    listener, url = listen("127.0.0.1:0")
    async with shell.running(), serving(application(shell.routes(store, trusted=True), token), listener):
        async with ClientSession(timeout=ClientTimeout(total=20)) as session:
            yield Api(session, url, shell, store)
        shell.stream.close()
    await store.close()


def check_info(name, scope, objective=None):
    schema: Json = {"type": "object", "properties": {"size": {"type": "integer"}}, "additionalProperties": False}
    return CheckInfo(
        name=name,
        summary="",
        scope=scope,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=1.0,
        objective=objective,
        params=schema,
    )


@pytest.fixture
async def fleet(api):
    """Three nodes that are there and know two checks."""
    now = api.shell.pipeline.clock()
    checks = (check_info("gemm", Scope.NODE), check_info("collective", Scope.GROUP, "busbw_gbps"))
    for node in ("n1", "n2", "n3"):
        await api.feed(PresenceSeen(Presence(sent_at=now, node=node, online=True)))
        await api.feed(InventorySeen(InventoryReport(sent_at=now, node=node, inventory=Inventory(), checks=checks)))
    return api


def report(node, *numbers, verdict=Verdict.PASS):
    runs = tuple(
        Run(id=f"{node}-{n}", node=node, check="gemm", verdict=verdict, started_at=1000.0 + n, duration_s=1.0, seq=n)
        for n in numbers
    )
    return ReportSeen(Report(sent_at=time.time(), node=node, stream=node, after=0, runs=runs))


async def test_nodes_are_listed_in_pages(fleet):
    """Every page size gives the same nodes, by name."""
    for limit in (1, 2, 3, 100):
        names, cursor = [], ""
        while cursor is not None:
            page = await fleet.get(f"/api/v1/nodes?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
            names += [node["name"] for node in page["items"]]
            cursor = page["next_cursor"]
        assert names == ["n1", "n2", "n3"]


async def test_a_node_carries_what_is_promised(fleet):
    """The fields that others script against are there."""
    node = await fleet.get("/api/v1/nodes/n1")
    assert {"name", "health", "service", "last_seen", "devices", "findings"} <= set(node)
    assert node["last_seen"].endswith("Z")


async def test_runs_are_filtered_by_every_parameter(fleet):
    """Node, check, verdict, since, limit and cursor narrow the list."""
    await fleet.feed(report("n1", 1, 2, 3))
    await fleet.feed(report("n2", 1, verdict=Verdict.FAIL))
    for query, found in {
        "": 4,
        "?node=n1": 3,
        "?check=gemm": 4,
        "?check=nvml": 0,
        "?verdict=FAIL": 1,
        "?since=1970-01-01T00:16:42Z": 2,
        "?since=1970-01-01T01:16:42%2B01:00": 2,
        "?limit=2": 2,
    }.items():
        page = await fleet.get(f"/api/v1/runs{query}")
        assert len(page["items"]) == found, query
    first = await fleet.get("/api/v1/runs?limit=3")
    rest = await fleet.get(f"/api/v1/runs?limit=3&cursor={first['next_cursor']}")
    assert len(rest["items"]) == 1
    assert rest["next_cursor"] is None


async def test_a_run_can_be_read(fleet):
    """The same record as in the list."""
    await fleet.feed(report("n1", 1, 2))
    listed = (await fleet.get("/api/v1/runs"))["items"]
    assert [await fleet.get(f"/api/v1/runs/{run['id']}") for run in listed] == listed


REFERENCE = {"check": "gemm", "metric": "rpm", "when": {"nodes": [1, 2]}, "fail_below": 5.0, "source": "a test"}


async def all_references(api, limit=1000):
    rows, cursor = [], ""
    while cursor is not None:
        page = await api.get(f"/api/v1/references?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        assert len(page["items"]) <= limit
        rows += page["items"]
        cursor = page["next_cursor"]
    return rows


async def test_references_are_the_shipped_ones_then_those_that_were_set(fleet):
    """In pages of any size, each with its origin; of what was set the last comes last."""
    shipped = await all_references(fleet)
    assert {row["origin"] for row in shipped} == {"shipped"}
    for bound, metric in enumerate(("rpm", "noise", "rpm")):
        response, answer = await fleet.ask(
            "PUT", "/api/v1/references", json={**REFERENCE, "metric": metric, "fail_below": bound}
        )
        assert (response.status, answer["origin"], answer["fail_below"]) == (200, "operator", bound)
    for limit in (1, 7, 1000):
        rows = await all_references(fleet, limit)
        assert rows[: len(shipped)] == shipped
        assert [(row["metric"], row["fail_below"]) for row in rows[len(shipped) :]] == [("noise", 1), ("rpm", 2)]


async def test_a_reference_that_was_set_can_be_removed(fleet):
    """By check, metric and conditions; it is stored and gone as soon as that is answered."""
    await fleet.ask("PUT", "/api/v1/references", json=REFERENCE)
    assert len((await fleet.store.saved()).references) == 1
    where = "/api/v1/references?check=gemm&metric=rpm"
    assert "unknown operator's reference" in await fleet.refused(422, "DELETE", where)
    response, answer = await fleet.ask("DELETE", where + '&when={"nodes":[1,2]}')
    assert (response.status, answer) == (200, {"check": "gemm", "metric": "rpm", "when": {"nodes": [1, 2]}})
    assert (await fleet.store.saved()).references == ()
    assert {row["origin"] for row in await all_references(fleet)} == {"shipped"}


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"check": "gem"}, "unknown check 'gem'; did you mean 'gemm'?"),
        ({"check": "no name"}, "field 'check'"),
        ({"fail_belo": 1}, "unknown field 'fail_belo'; did you mean 'fail_below'?"),
        ({"origin": "shipped"}, "unknown field 'origin'"),
        ({"fail_below": None}, "give at least one of fail_below, warn_below, warn_above, fail_above"),
        ({"warn_below": 1}, "fail_below, warn_below must not fall in this order"),
        ({"fail_below": "much"}, "field 'fail_below'"),
        ({"when": {"nodes": {"at_lest": 1}}}, "field 'when.nodes': must be a value (equal to it), a list"),
        ({"when": []}, "field 'when': must be a table"),
        ({"source": ""}, "field 'source'"),
    ],
)
async def test_a_wrong_reference_is_refused(fleet, change, detail):
    """It says what would be right, and nothing is set."""
    assert detail in await fleet.refused(422, "PUT", "/api/v1/references", json={**REFERENCE, **change})
    assert {row["origin"] for row in await all_references(fleet)} == {"shipped"}


async def test_a_story_can_be_read(fleet):
    """The story of a node is a list of steps with time, kind and text."""
    steps = (await fleet.get("/api/v1/nodes/n1/story"))["items"]
    assert steps
    assert {"id", "at", "node", "kind", "text", "cause", "data"} <= set(steps[0])


async def test_a_sweep_is_started_read_and_aborted(fleet):
    """201 with its place, then the same record there, then 202 for the end of it."""
    response, sweep = await fleet.ask("POST", "/api/v1/sweeps", json={**SWEEP, "params": {"size": 3}})
    assert response.status == 201
    assert response.headers["Location"] == f"/api/v1/sweeps/{sweep['id']}"
    assert {
        "id", "state", "strategy", "rounds", "suspects", "failed_nodes", "failed_links", "cleared_nodes",
        "inconclusive",
    } <= set(sweep)  # fmt: skip
    assert sweep["state"] in ("planned", "running")
    assert (await fleet.get(response.headers["Location"]))["id"] == sweep["id"]
    assert [it["id"] for it in (await fleet.get("/api/v1/sweeps"))["items"]] == [sweep["id"]]
    response, aborted = await fleet.ask("DELETE", f"/api/v1/sweeps/{sweep['id']}")
    assert (response.status, aborted["state"]) == (202, "aborted")
    response, again = await fleet.ask("DELETE", f"/api/v1/sweeps/{sweep['id']}")
    assert (response.status, again) == (202, aborted)


async def test_what_was_answered_is_stored(fleet):
    """When the answer to a new sweep comes, the database has it."""
    _, sweep = await fleet.ask("POST", "/api/v1/sweeps", json=SWEEP)
    assert (await fleet.store.sweep(sweep["id"])).id == sweep["id"]


async def test_a_check_can_be_run_now(fleet):
    """202 with the id that the run will have."""
    response, answer = await fleet.ask("POST", "/api/v1/nodes/n1/runs", json={"check": "gemm"})
    assert response.status == 202
    assert list(answer) == ["id"]


@pytest.mark.parametrize(
    ("status", "request_line", "body", "detail"),
    [
        (404, "GET /nothing", None, "there is nothing at /nothing"),
        (404, "GET /api/v1/nodes/n9", None, "unknown node 'n9' (valid: n1, n2, n3)"),
        (404, "GET /api/v1/nodes/n9/story", None, "unknown node 'n9' (valid: n1, n2, n3)"),
        (404, "POST /api/v1/nodes/n9/runs", {"check": "gemm"}, "unknown node 'n9' (valid: n1, n2, n3)"),
        (404, "GET /api/v1/runs/none", None, "no run 'none'"),
        (400, "GET /api/v1/references?check=gemm", None, "unknown query parameter 'check' (valid: cursor, limit)"),
        (422, "GET /api/v1/references?cursor=x", None, "cursor"),
        (400, "DELETE /api/v1/references", None, "query parameter 'check': must be given"),
        (400, "DELETE /api/v1/references?check=a&metric=b&when=c", None, "query parameter 'when': Invalid JSON"),
        (400, "DELETE /api/v1/references?check=a&metric=b&when=[]", None, "query parameter 'when': must be a table"),
        (404, "GET /api/v1/sweeps/none", None, "no sweep 'none'"),
        (404, "DELETE /api/v1/sweeps/none", None, "no sweep 'none'"),
        (404, "GET /api/v1/sweeps/none/explain?node=n1", None, "no sweep 'none'"),
        (404, "GET /api/v1/sweeps/none/export?format=csv", None, "no sweep 'none'"),
        (400, "GET /api/v1/sweeps/none/explain", None, "query parameter 'node': must be given"),
        (400, "GET /api/v1/sweeps/none/explain?node=%1b[2J", None, "query parameter 'node'"),
        (400, "GET /api/v1/sweeps/none/export", None, "query parameter 'format': must be given"),
        (400, "GET /api/v1/sweeps/none/export?format=png", None, "'nccl-tests' or 'matrix'"),
        (405, "POST /api/v1/nodes", {}, "only GET, HEAD"),
        (405, "PUT /api/v1/sweeps", {}, "only GET, HEAD, POST"),
        (400, "GET /api/v1/runs?nod=n1", None, "unknown query parameter 'nod'; did you mean 'node'? (valid: check,"),
        (400, "GET /api/v1/nodes?node=n1", None, "unknown query parameter 'node' (valid: cursor, limit)"),
        (400, "GET /api/v1/nodes/n1?x=1", None, "unknown query parameter 'x' (valid: none)"),
        (400, "GET /api/v1/runs?limit=0", None, "query parameter 'limit'"),
        (400, "GET /api/v1/runs?limit=1001", None, "query parameter 'limit'"),
        (400, "GET /api/v1/runs?verdict=BAD", None, "query parameter 'verdict'"),
        (400, "GET /api/v1/runs?since=yesterday", None, "query parameter 'since'"),
        (400, "GET /api/v1/runs?since=2026-01-01T00:00:00", None, "time zone"),
        (400, "GET /api/v1/runs?node=n1&node=n2", None, "more than once"),
        (422, "GET /api/v1/runs?cursor=x", None, "cursor"),
        (422, "GET /api/v1/nodes?cursor=x", None, "cursor"),
        (422, "POST /api/v1/sweeps", {}, "field 'check': must be given"),
        (422, "POST /api/v1/sweeps", {**SWEEP, "node": "n1"}, "unknown field 'node'; did you mean 'nodes'?"),
        (422, "POST /api/v1/sweeps", {**SWEEP, "nodes": []}, "field 'nodes'"),
        (422, "POST /api/v1/sweeps", {**SWEEP, "check": "colective"}, "did you mean 'collective'?"),
        (422, "POST /api/v1/sweeps", {**SWEEP, "strategy": "pair"}, "did you mean 'pairs'?"),
        (422, "POST /api/v1/sweeps", {**SWEEP, "nodes": ["n1", "n9"]}, "n9"),
        (422, "POST /api/v1/sweeps", {**SWEEP, "params": {"siz": 1}}, "siz"),
        (422, "POST /api/v1/nodes/n1/runs", {"check": "gem"}, "did you mean 'gemm'?"),
        (422, "POST /api/v1/nodes/n1/runs", {"check": "gemm", "params": {"size": "x"}}, "size"),
        (400, "POST /api/v1/sweeps", [1], "a JSON object"),
    ],
)
async def test_wrong_requests_are_told_what_would_be_right(fleet, status, request_line, body, detail):
    """Each is a problem with a status and a sentence, and nothing is started."""
    method, path = request_line.split()
    options = {} if body is None else {"json": body}
    assert detail in await fleet.refused(status, method, path, **options)
    assert (await fleet.get("/api/v1/sweeps"))["items"] == []


@pytest.mark.parametrize(
    ("status", "data", "kind", "detail"),
    [
        (400, b"{", "application/json", "not JSON"),
        (400, b"\xff", "application/json", "not JSON"),
        (400, b"\xff", "application/json; charset=klingon", "not JSON"),
        (400, b"[" * 100_000, "application/json", "not JSON"),
        (400, b'{"check": NaN}', "application/json", "not JSON"),
        (415, b"check=gemm", "application/x-www-form-urlencoded", "application/json"),
        (415, b"{}", "text/plain", "application/json"),
        (413, b" " * (MAX_BODY_BYTES + 1), "application/json", f"larger than {MAX_BODY_BYTES} bytes"),
    ],
)
async def test_bodies_that_are_no_json_are_refused(api, status, data, kind, detail):
    """Only a JSON body of a sensible size is read; a web page's form is not."""
    headers = {"Content-Type": kind}
    assert detail in await api.refused(status, "POST", "/api/v1/sweeps", data=io.BytesIO(data), headers=headers)


async def test_a_body_that_is_not_compressed_as_it_says_is_refused(api):
    """Whoever sent it learns what is wrong with it."""
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    data = io.BytesIO(b"{}")
    assert "Content-Encoding" in await api.refused(400, "POST", "/api/v1/sweeps", data=data, headers=headers)


async def test_a_bug_is_a_problem_without_details(api, monkeypatch):
    """Whoever asks learns that it failed; the log has the rest."""

    async def broken(*_arguments):
        raise RuntimeError("secret details")

    monkeypatch.setattr(api.store, "sweeps", broken)
    assert "secret" not in await api.refused(500, "GET", "/api/v1/sweeps")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "[", "10.0.0.1"])
async def test_other_names_than_loopback_are_refused_without_a_token(api, host):
    """A web page that resolves its own name to 127.0.0.1 gets nothing."""
    await api.refused(403, "GET", "/api/v1/nodes", headers={"Host": host})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:8787", "LOCALHOST:1"])
async def test_loopback_names_are_taken(api, host):
    """However loopback is written."""
    response, _ = await api.ask("GET", "/api/v1/nodes", headers={"Host": host})
    assert response.status == 200


class TestWithAToken:
    """Every route but the probes needs the token."""

    @pytest.fixture
    def token(self):
        return TOKEN

    @pytest.mark.parametrize(
        "given", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"]
    )
    @pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/events", "/metrics", "/nothing"])
    async def test_who_does_not_bear_it_is_refused(self, api, given, path):
        """401 that says which scheme is expected."""
        headers = {} if given is None else {"Authorization": given}
        response, _ = await api.ask("GET", path, headers=headers)
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
    async def test_who_bears_it_is_served(self, api, scheme):
        """By any host name."""
        headers = {"Authorization": f"{scheme} {TOKEN}", "Host": "coordinator.example"}
        response, _ = await api.ask("GET", "/api/v1/nodes", headers=headers)
        assert response.status == 200

    async def test_probes_need_none(self, api):
        """Liveness and readiness are open."""
        assert await api.get("/healthz") == {"status": "ok"}
        await api.refused(503, "GET", "/readyz")


async def test_not_ready_without_a_broker(api):
    """Ready means that nodes can be heard."""
    assert "broker" in await api.refused(503, "GET", "/readyz")


async def test_metrics_count_nodes_runs_and_refusals(fleet):
    """The exposition has what an operator watches."""
    await fleet.feed(report("n1", 1, 2))
    fleet.shell.link.refused["malformed"] += 1
    text = await fleet.get("/metrics")
    assert 'muster_messages_refused_total{kind="malformed"} 1.0' in text
    assert "muster_runs_total 2.0" in text
    assert "muster_nodes{" in text
    assert "muster_broker_connected 0.0" in text


async def read_events(response, count):
    events: list[dict[str, str]] = []
    event: dict[str, str] = {}
    while len(events) < count:
        key, _, value = (await response.content.readline()).decode().rstrip("\n").partition(": ")
        if key:
            event[key] = value
        elif "id" in event:
            events.append(event)
            event = {}
        else:
            event = {}
    return events


async def test_events_are_streamed_with_ids(api):
    """A listener gets what happens from now on, in order; with an id, what came after it too."""
    async with api.session.get(f"{api.url}/api/v1/events") as response:
        assert response.content_type == "text/event-stream"
        await api.feed(report("n1", 1, 2, 3))
        told = [event for event in await read_events(response, 3) if event["event"] == "run"]
        ids = [event["id"] for event in told]
    async with api.session.get(f"{api.url}/api/v1/events", headers={"Last-Event-ID": ids[0]}) as response:
        assert [event["id"] for event in await read_events(response, 2)][: len(ids) - 1] == ids[1:]


async def test_a_listener_that_leaves_is_forgotten(api):
    """Nothing is kept for who has gone."""
    response = await api.session.get(f"{api.url}/api/v1/events")
    assert api.shell.stream.listeners == 1
    response.close()
    async with asyncio.timeout(20):
        while api.shell.stream.listeners:
            await api.feed(report("n1", 1))
            await asyncio.sleep(0.01)


def test_a_listener_that_is_too_slow_is_cut_off():
    """It gets what waited and then the end; the others notice nothing."""
    stream = Stream(1)
    run = Run(id="r", node="n", check="c", verdict=Verdict.PASS, started_at=1.0, duration_s=1.0)
    with stream.listen(None) as slow:
        for _ in range(WAITING + 1):
            stream.tell(Announce("run", run))
        with stream.listen(f"1-{WAITING - 4}") as other:
            assert stream.listeners == 1
            assert other.qsize() == 5
        waiting = [slow.get_nowait() for _ in range(slow.qsize())]
    assert len(waiting) == WAITING + 1
    assert waiting[-1] is None


def test_ids_of_another_coordinator_mean_nothing():
    """After a restart a listener starts from now."""
    stream = Stream(2)
    run = Run(id="r", node="n", check="c", verdict=Verdict.PASS, started_at=1.0, duration_s=1.0)
    stream.tell(Announce("run", run))
    with stream.listen("1-0") as queue:
        assert queue.empty()


def test_an_empty_token_is_refused(tmp_path):
    """An empty file would let everybody in."""
    file = tmp_path / "token"
    file.write_text(" \n")
    with pytest.raises(SettingsError, match="is empty"):
        read_token(HttpSettings(token_file=file))


def test_a_taken_port_is_named():
    """The message names the setting."""
    listener, url = listen("127.0.0.1:0")
    with listener, pytest.raises(Unavailable, match=r"http.listen: cannot listen on .*in use"):
        listen(url.removeprefix("http://"))


@pytest.fixture
async def compared(fleet):
    """A dozen nodes that have measured a compared metric three times, of which n7 is slow."""
    gemm = check_info("gemm", Scope.NODE).model_copy(update={"compared": {"tflops": Worse.LOWER}})
    for number in range(12):
        node = f"n{number}"
        message = InventoryReport(sent_at=time.time(), node=node, inventory=Inventory(), checks=(gemm,))
        await fleet.feed(InventorySeen(message))
        runs = [
            run.model_copy(update={"metrics": {"tflops": [70.0, 50.0 if number == 7 else 70.0]}})
            for run in report(node, 1, 2, 3).message.runs
        ]
        await fleet.feed(ReportSeen(Report(sent_at=time.time(), node=node, stream=node, after=0, runs=tuple(runs))))
    return fleet


async def test_the_fleet_is_shown_as_a_whole(compared):
    """Counts by health and service state."""
    view = await compared.get("/api/v1/fleet")
    assert view["nodes"] == 12
    assert view["health"] == {"HEALTHY": 11, "DEGRADED": 1}
    assert (view["service"], view["lost"], view["findings"]) == ({"IN_SERVICE": 12}, [], [])
    await compared.refused(400, "GET", "/api/v1/fleet?node=n1")


async def test_baselines_are_listed_and_reset(compared):
    """With what is normal and who is not; after a reset what is measured now is normal, also after a restart."""
    (view,) = (await compared.get("/api/v1/baselines?limit=1"))["items"]
    assert (view["metric"], view["centre"], view["anchor"]["centre"]) == ("tflops", 70.0, 70.0)
    assert view["out_of_line"] == ["n7"]
    assert (await compared.get("/api/v1/nodes/n7"))["health"] == "DEGRADED"
    response, answer = await compared.ask("DELETE", f"/api/v1/baselines/{view['id']}")
    assert (response.status, answer["id"], answer["out_of_line"]) == (200, view["id"], [])
    (stored,) = (await compared.store.saved()).baselines
    assert (stored.id, stored.anchor.devices) == (view["id"], 24)
    assert "/api/v1/baselines" in await compared.refused(404, "DELETE", "/api/v1/baselines/nothing")


async def test_a_node_has_a_history(compared):
    """The latest first, in pages, of one device or all."""
    path = "/api/v1/nodes/n7/history?metric=tflops"
    points = (await compared.get(path))["items"]
    assert [point["run"] for point in points] == ["n7-3", "n7-2", "n7-1"]
    assert points[0]["values"] == {"0": 70.0, "1": 50.0}
    assert points[0]["verdicts"] == {"PASS": 1}
    first = await compared.get(f"{path}&limit=2&device=1")
    rest = await compared.get(f"{path}&limit=2&device=1&cursor={first['next_cursor']}")
    assert [point["values"] for point in first["items"] + rest["items"]] == [{"1": 50.0}] * 3
    assert len((await compared.get(f"{path}&since=1970-01-01T00:16:42Z&until=1970-01-01T00:16:43Z"))["items"]) == 1
    assert (await compared.get(f"{path}&check=memory"))["items"] == []
    assert "metric" in await compared.refused(400, "GET", "/api/v1/nodes/n7/history")
    await compared.refused(404, "GET", "/api/v1/nodes/n77/history?metric=tflops")


async def test_metrics_count_what_comparing_found(compared):
    """By code; fleet findings and thinned runs as well."""
    text = await compared.get("/metrics")
    for line in (
        'muster_compared{code="baseline.outlier"} 1.0',
        'muster_compared{code="baseline.fingerprint"} 0.0',
        "muster_baselines 1.0",
        "muster_fleet_findings 0.0",
        "muster_runs_thinned_total 0.0",
    ):
        assert line in text.splitlines()
