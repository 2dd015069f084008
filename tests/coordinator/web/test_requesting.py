"""What can be asked for over the API, and what is refused."""

import asyncio
import io
import re
import time

from tests.cases import cases

from muster_coordinator.model.events import SaveSweep
from muster_coordinator.model.sweep_records import SweepRecord, SweepState
from muster_coordinator.web.server import MOST_BODY_BYTES

MANY = [0] * 110_000
"""More than an order to a node may contain."""

SWEEP = {"check": "collective", "strategy": "pairs"}


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


async def test_a_sweep_has_a_short_id_and_answers_to_its_beginning(fleet):
    """Eight characters; every route takes any prefix that no other sweep has, and ids as long as they once were."""
    _, sweep = await fleet.ask("POST", "/api/v1/sweeps", json=SWEEP)
    assert re.fullmatch("[a-z2-7]{8}", sweep["id"])
    old = SweepRecord.model_validate({**sweep, "id": "0" * 31 + "1", "state": "finished"})
    await fleet.store.write([SaveSweep(old)])
    assert (await fleet.get(f"/api/v1/sweeps/{sweep['id'][:3]}"))["id"] == sweep["id"]
    assert (await fleet.get("/api/v1/sweeps/00000000"))["id"] == old.id
    assert (await fleet.get(f"/api/v1/sweeps/{old.id}"))["id"] == old.id
    _, aborted = await fleet.ask("DELETE", f"/api/v1/sweeps/{sweep['id'][:4]}")
    assert (aborted["id"], aborted["state"]) == (sweep["id"], "aborted")


async def test_a_beginning_of_several_sweeps_is_refused(fleet):
    """409 with the ids to choose from, ten at most; an id that others begin with is meant by itself."""
    now = time.time()
    ended = SweepRecord(id="", state=SweepState.FINISHED, strategy="pairs", check="gemm", nodes=(), created_at=now)
    ids = ("beef", "beefcafe", "beefbabe", *(f"d{number}" for number in range(12)))
    await fleet.store.write([SaveSweep(ended.model_copy(update={"id": each})) for each in ids])
    detail = await fleet.refused(409, "GET", "/api/v1/sweeps/bee")
    assert detail == "several sweeps begin with 'bee': beef, beefbabe, beefcafe; type more characters"
    assert (await fleet.get("/api/v1/sweeps/beef"))["id"] == "beef"
    assert (await fleet.refused(409, "GET", "/api/v1/sweeps/d")).endswith("d6, d7 and more; type more characters")


async def test_what_was_answered_is_stored(fleet):
    """When the answer to a new sweep comes, the database has it."""
    _, sweep = await fleet.ask("POST", "/api/v1/sweeps", json=SWEEP)
    assert (await fleet.store.sweep(sweep["id"])).id == sweep["id"]


async def test_a_check_can_be_run_now(fleet):
    """202 with the id that the run will have."""
    response, answer = await fleet.ask("POST", "/api/v1/nodes/n1/runs", json={"check": "gemm"})
    assert response.status == 202
    assert list(answer) == ["id"]


@cases(
    ("status", "request_line", "body", "detail"),
    [
        (404, "GET /nothing", None, "no such path: /nothing"),
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
        (405, "POST /api/v1/nodes", {}, "use GET, HEAD"),
        (405, "PUT /api/v1/sweeps", {}, "use GET, HEAD, POST"),
        (400, "GET /api/v1/runs?nod=n1", None, "unknown query parameter 'nod'; did you mean 'node'? (valid: check,"),
        (400, "GET /api/v1/nodes?node=n1", None, "unknown query parameter 'node' (valid: cursor, limit, select, sort)"),
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
        (
            422,
            "POST /api/v1/nodes/n1/runs",
            {"check": "gemm", "params": {"size": MANY}},
            "field 'params': holds more than",
        ),
        (422, "POST /api/v1/sweeps", {**SWEEP, "params": {"size": MANY}}, "field 'params': holds more than"),
        (400, "POST /api/v1/sweeps", [1], "a JSON object"),
    ],
)
async def test_wrong_requests_are_told_what_would_be_right(fleet, status, request_line, body, detail):
    """Each is a problem with a status and a sentence, and nothing is started."""
    method, path = request_line.split()
    options = {} if body is None else {"json": body}
    assert detail in await fleet.refused(status, method, path, **options)
    assert (await fleet.get("/api/v1/sweeps"))["items"] == []


@cases(
    ("status", "data", "kind", "detail"),
    [
        (400, b"{", "application/json", "not JSON"),
        (400, b"\xff", "application/json", "not JSON"),
        (400, b"\xff", "application/json; charset=klingon", "not JSON"),
        (400, b"[" * 100_000, "application/json", "not JSON"),
        (400, b'{"check": NaN}', "application/json", "not JSON"),
        (415, b"check=gemm", "application/x-www-form-urlencoded", "application/json"),
        (415, b"{}", "text/plain", "application/json"),
        (413, b" " * (MOST_BODY_BYTES + 1), "application/json", f"larger than {MOST_BODY_BYTES} bytes"),
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


async def test_a_body_that_does_not_arrive_is_a_timeout(fleet, monkeypatch):
    """The answer has the time limit, and the connection is closed."""
    monkeypatch.setattr("muster_coordinator.web.requests.BODY_S", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(fleet.url.rpartition(":")[2]))
    head = ("POST /api/v1/sweeps HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Content-Length: 99")
    writer.write("\r\n".join((*head, "", '{"check"')).encode())
    async with asyncio.timeout(20):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not arrive within 0.1 s" in answer
    writer.close()


@cases(
    ("path", "body", "detail"),
    [
        (
            "/api/v1/nodes/n1/release",
            {"by": "me", "reason": "mine", "untested": 0},
            "'untested': must be a valid boolean",
        ),
        (
            "/api/v1/nodes/n1/release",
            {"by": "me", "reason": "mine", "untested": "no"},
            "must be a valid boolean (got 'no')",
        ),
        ("/api/v1/sweeps", {**SWEEP, "priority": False}, "field 'priority': must be a valid integer (got False)"),
        ("/api/v1/sweeps/plan", {**SWEEP, "passes": "2"}, "field 'passes': must be a valid integer (got '2')"),
        ("/api/v1/sweeps/plan", {**SWEEP, "passes": 2.5}, "field 'passes': must be a valid integer"),
        ("/api/v1/sweeps/plan", {**SWEEP, "passes": 1e300}, "field 'passes': must be a valid integer"),
        ("/api/v1/sweeps/plan", {**SWEEP, "max_node_s": "9"}, "field 'max_node_s': must be a valid number (got '9')"),
    ],
)
async def test_a_value_of_another_type_is_refused(fleet, path, body, detail):
    """Nobody has to guess what a text stands for."""
    assert detail in await fleet.refused(422, "POST", path, json=body)


async def test_a_whole_number_may_have_a_decimal_point(fleet):
    """JSON does not tell 2.0 from 2, and some writers have no other form."""
    written = {**SWEEP, "passes": 2.0, "max_rounds": 8.0, "priority": -1.0}
    status, plan = await fleet.ask("POST", "/api/v1/sweeps/plan", json=written)
    assert status.status == 200, plan
    assert plan == (await fleet.ask("POST", "/api/v1/sweeps/plan", json={**SWEEP, "passes": 2, "max_rounds": 8}))[1]
