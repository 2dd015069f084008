"""Schemathesis asks a coordinator what its OpenAPI document allows, and much that it forbids.

Every answer must be one that the document describes, by status, headers, content type and schema. What the document
forbids is refused, and nothing is changed without the token. `SCHEMATHESIS_EXAMPLES=500` asks for more than CI does.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from tests.coordinator.web.acceptances import acceptance, sent
from tests.coordinator.web.described import route_of

from muster.local_token import find_token
from muster_coordinator.web.guard import ACCEPTANCE
from muster_coordinator.web.route_table import ROUTES

ROOT = Path(__file__).parents[3]
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "5"))
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "ignored_auth",
)
NODES = [f"n{number}" for number in range(12)]
SILENT = NODES[-2:]
BY = {"by": "ann", "reason": "a fan"}
REFERENCE = {"check": "gemm", "metric": "tflops", "fail_below": 1.0, "source": "a test"}
ENVIRONMENT = {"PATH": os.environ["PATH"], "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis")}
"""Small, because `requests` looks twice through all variables at each request. Hypothesis keeps what it has worked out
about the characters of UTF-8, which takes it seconds.
"""

MOST_GROWN_MIB = 64
"""Of 24,000 recorded requests, sent again and again, the coordinator took 43 MiB the first time and 6 the last."""

UNREACHED = {"lift_freeze", "get_openapi"}
"""No mass event is under way, and Schemathesis has read the document before it begins."""

LIMITED = {"log_in"}
"""It answers 429 after ten wrong tokens. On a slow machine, enough time passes for a right one."""

CONFIG = """
[cache]
enabled = false

[auth.openapi.token]
bearer = {token}

[dictionaries]
nodes.values = {nodes}
silent.values = {silent}
checks.values = ["gemm", "nvml", "collective"]
runs.values = {runs}
sweeps.values = {sweeps}
baselines.values = {baselines}
reports.values = {reports}
metrics.values = ["tflops", "busbw_gbps"]
keys.values = ["rack", "name", "urgency", "label:pool"]
people.values = ["ann", "bob"]
tokens.values = [{token}]
reasons.values = ["a fan", "the fan is replaced"]

[parameters]
"path.node" = {{ dictionary = "nodes", probability = 0.8 }}
"path.run" = {{ dictionary = "runs", probability = 0.8 }}
"path.sweep" = {{ dictionary = "sweeps", probability = 0.8 }}
"path.report" = {{ dictionary = "reports", probability = 0.8 }}
"path.baseline" = {{ dictionary = "baselines", probability = 0.8 }}
"query.node" = {{ dictionary = "nodes", probability = 0.5 }}
"query.check" = {{ dictionary = "checks", probability = 0.5 }}
"query.metric" = {{ dictionary = "metrics", probability = 0.5 }}
"query.by" = {{ dictionary = "keys", probability = 0.8 }}
"query.sort" = {{ dictionary = "keys", probability = 0.8 }}
"body.check" = {{ dictionary = "checks", probability = 0.8 }}
"body.nodes[*]" = {{ dictionary = "nodes", probability = 0.8 }}
"body.by" = {{ dictionary = "people", probability = 0.8 }}
"body.token" = {{ dictionary = "tokens", probability = 0.8 }}
"body.reason" = {{ dictionary = "reasons", probability = 0.8 }}

[[operations]]  # any method but GET needs the token, before anybody looks whether there is such a method
include-path = ["/healthz", "/readyz", "/api/v1/session"]
phases.coverage.unexpected-methods = []

[[operations]]  # only silent nodes are forgotten
include-path = "/api/v1/nodes/{{node}}/forget"
parameters."path.node" = {{ dictionary = "silent", probability = 0.8 }}

[[operations]]  # it never ends
include-path = ["/api/v1/events", "/api/v1/changes"]
request-timeout = 10.0
max-stream-events = 1
"""


async def beat(nodes):
    """Heartbeats of these nodes: the test may take longer than 30 s."""
    while True:
        for node in nodes:
            await node.come()
        await asyncio.sleep(5)


@pytest.fixture
async def busy(coordinator, nodes, eventually):
    """A coordinator with something to show on every route."""
    async with nodes(coordinator, *NODES) as connected:
        for name, node in connected.items():
            for _ in range(3):
                await node.report("gemm", metrics={"tflops": 50.0 if name == "n7" else 70.0})
        await eventually(lambda: coordinator.get("/api/v1/baselines")["items"])
        status, sweep = coordinator.ask("POST", "/api/v1/sweeps", {"check": "collective", "strategy": "pairs"})
        assert status == 201
        await eventually(lambda: coordinator.get(f"/api/v1/sweeps/{sweep['id']}")["state"] == "finished")
        for method, path, body in (
            ("PUT", "/api/v1/references", REFERENCE),
            ("POST", "/api/v1/nodes/n1/hold", BY),
            ("POST", "/api/v1/nodes/n1/release", BY),
        ):
            assert coordinator.ask(method, path, body)[0] == 200
        status, _ = coordinator.ask("POST", ACCEPTANCE, sent(acceptance("n1", "n2", failed={"n2"})))
        assert status == 201
        for name in SILENT:
            await connected[name].leave()
        await eventually(lambda: coordinator.get("/api/v1/fleet")["lost"] == sorted(SILENT))
        beating = asyncio.create_task(beat([node for name, node in connected.items() if name not in SILENT]))
        yield coordinator
        beating.cancel()


def ids(coordinator, path):
    return json.dumps([item["id"] for item in coordinator.get(f"/api/v1/{path}?limit=3")["items"]])


def config(coordinator):
    """What Schemathesis must know: the token, and names of what there is."""
    token = find_token(Path(coordinator.settings["MUSTER_DATA_DIR"]), coordinator.url)
    lists = {name: ids(coordinator, name) for name in ("runs", "sweeps", "baselines")}
    lists["reports"] = ids(coordinator, "acceptance")
    return CONFIG.format(token=json.dumps(token), nodes=json.dumps(NODES), silent=json.dumps(SILENT), **lists)


def resident_mib(process):
    """The memory of a process."""
    return psutil.Process(process.pid).memory_info().rss / 2**20


def answered(har):
    """How often each route answered with which status."""
    count: Counter[tuple[str, int]] = Counter()
    for entry in json.loads(har.read_text(encoding="utf-8"))["log"]["entries"]:
        route = route_of(entry["request"]["method"], urlsplit(entry["request"]["url"]).path)
        if route is not None:
            count[route.name, entry["response"]["status"]] += 1
    return count


@pytest.mark.timeout(120 * EXAMPLES)  # it takes 30 s on two quiet cores, and 100 s beside a dozen busy processes
async def test_every_answer_is_as_described(busy, tmp_path):
    """For hundreds of requests, valid and invalid ones. Each route has a success, and memory stays bounded."""
    before_mib = resident_mib(busy.process)
    (tmp_path / "schemathesis.toml").write_text(config(busy))
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", tmp_path / "schemathesis.toml", "run"),
        *(f"{busy.url}/api/v1/openapi.json", "--checks", ",".join(CHECKS), "--max-examples", str(EXAMPLES)),
        *("--seed", "12", "--generation-database", "none", "--no-color", "--request-timeout", "30"),
        *("--phases", "examples,coverage,fuzzing", "--report", "har", "--report-har-path", tmp_path / "requests.har"),
        *("--continue-on-failure",),
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await program.communicate()
    assert program.returncode == 0, output.decode()
    assert resident_mib(busy.process) - before_mib < MOST_GROWN_MIB
    statuses = answered(tmp_path / "requests.har")
    succeeded = {name for name, status in statuses if status < 300}
    assert {route.name for route in ROUTES} - succeeded - LIMITED == UNREACHED
