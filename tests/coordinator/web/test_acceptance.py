"""Acceptance reports come in over the API, and are found again."""

import gzip
import io
import json

import pytest
from tests.cases import cases
from tests.coordinator.web.acceptances import LOST, acceptance, changed, run_of, sent

from muster.acceptance import report, step_report
from muster.model import Inventory
from muster_coordinator.web.acceptance import MOST_BYTES
from muster_coordinator.web.guard import ACCEPTANCE, Access
from muster_coordinator.web.sessions import Right

GOOD = acceptance("n1", "n2")
GO = {"decision": "GO", "verdict": "PASS", "reason": ""}


async def post(api, body, **headers):
    response, answer = await api.ask("POST", ACCEPTANCE, json=body, headers=headers)
    assert response.status == 201, answer
    assert response.headers["Location"] == f"{ACCEPTANCE}/{answer['id']}"
    return answer


async def test_a_report_is_kept_whole(api):
    """With what it came to, who has sent it, and when it came."""
    bad = acceptance("n1", "n2", failed={"n2"})
    answer = await post(api, sent(bad))
    expected = {
        "suite": "full",
        "verdict": "FAIL",
        "cause": "XID 79 GPU3: GPU has fallen off the bus; reboot the node; GPU-3",
        "nodes": 2,
        "failed": 1,
        "failed_nodes": ["n2"],
        "without_gpu": 0,
        "simulated": False,
        "sent_by": "job 17",
    }
    assert {key: answer[key] for key in expected} == expected
    assert answer["received_at"] > answer["started_at"]
    whole = await api.get(f"{ACCEPTANCE}/{answer['id']}")
    assert whole.pop("report") == bad.model_dump(mode="json")
    assert whole == answer


async def test_a_report_that_comes_twice_is_there_once(api):
    """As it came first, whoever sends it then."""
    first = await post(api, sent(GOOD))
    assert await post(api, sent(GOOD, by="somebody else")) == first
    assert (await api.get(ACCEPTANCE))["items"] == [first]


async def test_a_compressed_report_is_taken(api):
    """It is as large as its content says, whatever came over the wire."""
    body = gzip.compress(json.dumps(sent(GOOD)).encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    response, answer = await api.ask("POST", ACCEPTANCE, data=body, headers=headers)
    assert (response.status, answer["nodes"]) == (201, 2)
    bomb = gzip.compress(b" " * (MOST_BYTES + 1))
    assert "8388608" in await api.refused(413, "POST", ACCEPTANCE, data=bomb, headers=headers)


async def test_a_report_larger_than_other_bodies_is_taken(api):
    """A suite on many nodes is larger than what other routes take."""
    runs = [run_of(f"n{number}", "gemm", facts={"log": "x" * 4000}) for number in range(500)]
    nodes = {run.node: Inventory() for run in runs}
    large = report("full", [step_report("COMPUTE", "gemm", "", runs)], nodes, 1_700_000_000.0, 10.0)
    body = io.BytesIO(json.dumps(sent(large)).encode())
    response, answer = await api.ask("POST", ACCEPTANCE, data=body, headers={"Content-Type": "application/json"})
    assert (response.status, answer["nodes"], answer["without_gpu"]) == (201, 500, 500)
    assert len((await api.get(f"{ACCEPTANCE}/{answer['id']}"))["report"]["nodes"]) == 500


@cases(
    "body, place",
    [
        (changed(GOOD, "verdict", to="FAIL"), "verdict: is FAIL, and PASS follows from the steps"),
        (changed(acceptance("n1", failed={"n1"}), "verdict", to="PASS"), "verdict: is PASS, and FAIL follows"),
        (changed(GOOD, "steps", 1, "verdict", to="WARN"), "steps.1.verdict: is WARN, and PASS follows from the runs"),
        (changed(GOOD, "steps", 0, "runs", 1, "node", to="n9"), "steps.0.runs.1.node: n9 is not among the nodes"),
        (changed(GOOD, "steps", 0, "runs", 1, "check", to="gemm"), "steps.0.runs.1.check: is gemm, and the step's"),
        (changed(GOOD, "steps", 0, "runs", 0, "simulated", to=True), "simulated: is false, and runs are simulated"),
        (changed(GOOD, "nodes", 1, "name", to="n1"), "nodes: a node is there twice"),
        (
            changed(GOOD, "steps", 0, "runs", 0, "findings", to=[LOST.model_dump(mode="json")]),
            "steps.0.runs.0.verdict: is PASS, and the run has found an error",
        ),
        (changed(GOOD, "conclusions", to=[GO | {"node": "n1"}]), "conclusions: there must be one for each node"),
        (
            changed(acceptance("n1", failed={"n1"}), "conclusions", to=[GO | {"node": "n1"}]),
            "conclusions.0.decision: is GO, and a run on n1 alone did not pass",
        ),
    ],
)
async def test_a_report_that_contradicts_itself_is_refused(api, body, place):
    """The answer says where."""
    detail = await api.refused(422, "POST", ACCEPTANCE, json=body)
    assert detail.startswith(f"field 'report': {place}")
    assert (await api.get(ACCEPTANCE))["items"] == []


@cases(
    "body, said",
    [
        ({}, "field 'report'"),
        (sent(GOOD, by=None), "field 'by': must be given"),
        (changed(GOOD, "nodes", 0, "name", to="<script>"), "field 'report.nodes.0.name'"),
        (changed(GOOD, "started_at", to="yesterday"), "field 'report.started_at'"),
        (changed(GOOD, "steps", 0, "check", to=""), "field 'report.steps.0.check'"),
    ],
)
async def test_a_body_that_is_no_report_is_refused(api, body, said):
    """The answer says which field is wrong."""
    assert said in await api.refused(422, "POST", ACCEPTANCE, json=body)


async def test_the_list_has_the_latest_first_and_filters(api):
    """By node, verdict and suite, in pages."""
    for number, (nodes, failed, suite) in enumerate(
        [(["n1"], [], "quick"), (["n1", "n2"], ["n2"], "full"), (["n3"], [], "full"), (["n2"], [], "quick")]
    ):
        await post(api, sent(acceptance(*nodes, failed=failed, suite=suite, started_at=1e9 + number)))

    async def listed(query):
        items = (await api.get(f"{ACCEPTANCE}?{query}"))["items"]
        return [int(item["started_at"][17:19]) % 10 for item in items]  # 1e9 s is 01:46:40 UTC

    assert await listed("") == [3, 2, 1, 0]
    assert await listed("node=n2") == [3, 1]
    assert await listed("verdict=FAIL") == [1]
    assert await listed("suite=full&node=n1") == [1]
    assert await listed("node=n9") == []
    first = await api.get(f"{ACCEPTANCE}?limit=3")
    assert [len(first["items"]), await listed(f"limit=3&cursor={first['next_cursor']}")] == [3, [0]]


async def test_an_unknown_acceptance_is_said(api):
    """With where they are listed."""
    assert "unknown acceptance 'n1'" in await api.refused(404, "GET", f"{ACCEPTANCE}/n1")


class TestTokens:
    """Nodes and jobs have a token with which they can send reports, and change nothing else."""

    @pytest.fixture
    def access(self):
        return Access("operate", Right.PROBE, "of http.token_file", "read", "report")

    @cases("token, status", [("read", 403), ("report", 201), ("operate", 201), ("wrong", 401), ("", 401)])
    async def test_who_may_send(self, api, token, status):
        """Operators and those with the token for reports."""
        headers = {"Authorization": f"Bearer {token}"}
        response, _ = await api.ask("POST", ACCEPTANCE, json=sent(GOOD), headers=headers)
        assert response.status == status

    async def test_the_token_for_reports_changes_nothing_else(self, api):
        """It may read."""
        headers = {"Authorization": "Bearer report"}
        said = {"by": "ann", "reason": "no"}
        await api.refused(403, "POST", "/api/v1/nodes/n1/hold", json=said, headers=headers)
        response, session = await api.ask("GET", "/api/v1/session", headers=headers)
        assert (response.status, session["role"]) == (200, "report")
