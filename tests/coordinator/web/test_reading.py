"""What the API shows of nodes, runs, baselines and the fleet, and its metrics."""

import time
from urllib.parse import quote

from tests.cases import cases
from tests.coordinator.web.messages import check_info, report

from muster.check import Scope
from muster.model import Device, Finding, Inventory, Severity, Topology, Verdict
from muster.version import __version__
from muster.wire.messages import InventoryReport, Presence, Report
from muster_coordinator.model.events import InventorySeen, PresenceSeen, ReportSeen
from muster_coordinator.store.packing import hourly_blocks
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.store.summaries import summarised
from muster_coordinator.store.tables import RUNS, SERIES
from muster_coordinator.web.answers import SLICE


async def test_nodes_are_listed_in_pages(fleet):
    """Every page size gives the same nodes, by name."""
    for limit in (1, 2, 3, 100):
        names, cursor = [], ""
        while cursor is not None:
            page = await fleet.get(f"/api/v1/nodes?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
            names += [node["name"] for node in page["items"]]
            cursor = page["next_cursor"]
        assert names == ["n1", "n2", "n3"]


async def test_summaries_are_the_nodes_in_short(compared):
    """In the same pages, with the values of the same fields."""
    paths = [f"/api/v1/{path}?limit=7" for path in ("nodes", "fleet/nodes")]
    whole, short = [await compared.get(path) for path in paths]
    assert short["next_cursor"] == whole["next_cursor"]
    for node, summary in zip(whole["items"], short["items"], strict=True):
        same = summary.keys() - {"devices", "findings"}
        assert {name: summary[name] for name in same} == {name: node[name] for name in same}
        assert [finding["code"] for finding in summary["findings"]] == [finding["code"] for finding in node["findings"]]
    assert [node["name"] for node in (await compared.get("/api/v1/fleet/nodes?select=health=DEGRADED"))["items"]] == [
        "n7"
    ]
    await compared.refused(422, "GET", "/api/v1/fleet/nodes?cursor=nonsense")


async def test_nodes_are_listed_in_an_order(compared):
    """What is wrong first, or by any key of selections, in pages of every size; whole and in short."""
    for path in ("nodes", "fleet/nodes"):
        for limit in (1, 5, 100):
            names, cursor = [], ""
            while cursor is not None:
                page = await compared.get(f"/api/v1/{path}?sort=urgency&limit={limit}{cursor and f'&cursor={cursor}'}")
                names += [node["name"] for node in page["items"]]
                cursor = page["next_cursor"]
            assert (names[0], sorted(names)) == ("n7", sorted(f"n{number}" for number in range(12))), (path, limit)
    by_name = await compared.get("/api/v1/nodes?limit=1")
    await compared.refused(422, "GET", f"/api/v1/nodes?sort=rack&cursor={by_name['next_cursor']}")
    assert "urgency" in await compared.refused(422, "GET", "/api/v1/nodes?sort=urgent")


async def test_nodes_are_counted_in_groups(compared):
    """By any key of selections, of all nodes or of those that fit."""
    for query, groups in {
        "by=health": [("DEGRADED", 1), ("HEALTHY", 11)],
        "by=rack": [(None, 12)],
        "by=name&select=health=DEGRADED": [("n7", 1)],
    }.items():
        page = await compared.get(f"/api/v1/fleet/groups?{query}")
        assert [(group["value"], group["nodes"]) for group in page["items"]] == groups, query
    first = await compared.get("/api/v1/fleet/groups?by=name&limit=7")
    rest = await compared.get(f"/api/v1/fleet/groups?by=name&cursor={first['next_cursor']}")
    assert len(first["items"] + rest["items"]) == 12
    assert "rack" in await compared.refused(422, "GET", "/api/v1/fleet/groups?by=rak")


async def test_a_long_list_is_compressed_for_clients_that_accept_it(api):
    """In several slices, with the same content."""
    names = [f"n{number:03}" for number in range(2 * SLICE + 1)]
    for name in names:
        await api.feed(PresenceSeen(Presence(sent_at=time.time(), node=name, online=True)))
    response, plain = await api.ask("GET", "/api/v1/nodes?limit=1000", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in response.headers
    response, compressed = await api.ask("GET", "/api/v1/nodes?limit=1000", headers={"Accept-Encoding": "gzip"})
    assert response.headers["Content-Encoding"] == "gzip"
    assert [node["name"] for node in compressed["items"]] == names
    assert compressed["items"] == plain["items"]


async def test_the_fleet_says_how_much_the_database_has(fleet):
    """Days are left only once it is known to grow."""
    await fleet.shell.retention.budget.keep()
    use = (await fleet.get("/api/v1/fleet"))["database"]
    assert 0 < use["used_gb"] < use["max_gb"]
    assert use["days_left"] is None
    fleet.shell.retention.budget.use.days_left = 2.5
    assert (await fleet.get("/api/v1/fleet"))["database"]["days_left"] == 2.5


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


async def test_a_story_can_be_read(fleet):
    """The story of a node is a list of steps with time, kind and text."""
    steps = (await fleet.get("/api/v1/nodes/n1/story"))["items"]
    assert steps
    assert {"id", "at", "node", "kind", "text", "cause", "data"} <= set(steps[0])


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
    assert (view["low"], view["high"], view["out_of_line"]) == (70.0, 70.0, ["n7"])
    assert (await compared.get("/api/v1/nodes/n7"))["health"] == "DEGRADED"
    response, answer = await compared.ask("DELETE", f"/api/v1/baselines/{view['id']}")
    assert (response.status, answer["id"], answer["out_of_line"]) == (200, view["id"], [])
    (stored,) = (await compared.store.saved()).baselines
    assert (stored.id, stored.anchor.devices) == (view["id"], 24)
    assert "muster baseline list" in await compared.refused(404, "DELETE", "/api/v1/baselines/nothing")


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
    assert len((await compared.get(f"{path}&check=gemm"))["items"]) == 3
    assert "metric" in await compared.refused(400, "GET", "/api/v1/nodes/n7/history")
    await compared.refused(404, "GET", "/api/v1/nodes/n77/history?metric=tflops")


async def test_a_history_has_steps(compared):
    """The runs of a step are one point, with extremes; steps need a begin, and there is a limit to their number."""
    path = "/api/v1/nodes/n7/history?metric=tflops&device=1&step_s=60"
    since = "since=1970-01-01T00:16:00Z"
    (point,) = (await compared.get(f"{path}&{since}&until=1970-01-01T01:00:00Z"))["items"]
    assert (point["run"], point["verdicts"], point["values"]) == (None, {"PASS": 3}, {"1": 50.0})
    assert (point["least"], point["most"]) == ({"1": 50.0}, {"1": 50.0})
    assert "give the time" in await compared.refused(422, "GET", path)
    assert "more than 1,000 steps" in await compared.refused(422, "GET", f"{path}&{since}")
    assert "step_s" in await compared.refused(400, "GET", f"{path[:-2]}5&{since}")
    assert "step_s" in await compared.refused(400, "GET", "/api/v1/history?metric=tflops&step_s=60")
    nothing = f"{path}&{since}&until=1970-01-01T01:00:00Z".replace("tflops", "tflop")
    assert "did you mean 'tflops'" in await compared.refused(422, "GET", nothing)


async def test_many_nodes_have_a_history_of_one_metric(compared):
    """In pages of nodes, the latest points of each; all of them or those that fit."""
    path = "/api/v1/history?metric=tflops"
    nodes: dict[str, list[str]] = {}
    cursor = ""
    while cursor is not None:
        page = await compared.get(f"{path}&limit=5&points=2{cursor and f'&cursor={cursor}'}")
        nodes |= {each["node"]: [point["run"] for point in each["points"]] for each in page["items"]}
        cursor = page["next_cursor"]
    assert nodes == {f"n{number}": [f"n{number}-3", f"n{number}-2"] for number in range(12)}
    (slow,) = (await compared.get(f"{path}&select=health=DEGRADED&device=1"))["items"]
    assert slow["points"] == (await compared.get("/api/v1/nodes/n7/history?metric=tflops&device=1"))["items"]
    assert (await compared.get(f"{path}&since=2100-01-01T00:00:00Z"))["items"][0]["points"] == []
    assert "tflops" in await compared.refused(422, "GET", "/api/v1/history?metric=tflop")
    await compared.refused(422, "GET", f"{path}&check=gem")


async def test_an_unknown_metric_is_refused(compared):
    """With what the node measures; a known one without values in the period is an empty list."""
    detail = await compared.refused(422, "GET", "/api/v1/nodes/n7/history?metric=tflop&since=2100-01-01T00:00:00Z")
    assert detail == "unknown metric 'tflop'; did you mean 'tflops'? (valid: tflops)"
    since = "/api/v1/nodes/n7/history?metric=tflops&since=2100-01-01T00:00:00Z"
    assert (await compared.get(since))["items"] == []


@cases("metric", ["TFLOPS", "tflop_", "%", "verdict", "duration_s", "nodes", "metrics", "median"])
async def test_what_else_a_run_holds_is_no_metric(compared, metric):
    """Its fields, facts and evidence; nor is a metric in another case, or a pattern."""
    detail = await compared.refused(422, "GET", f"/api/v1/nodes/n7/history?metric={quote(metric)}")
    assert detail.startswith(f"unknown metric '{metric}'")


async def test_a_metric_is_found_where_it_was_summarised(compared):
    """A summary names it, and no run any more; what the summary has besides is no metric there either."""
    run = (await compared.store.runs(RunFilter(node="n7"), 1, None)).items[0]
    async with compared.store.database.writing() as connection:
        (block,) = hourly_blocks(summarised([run]))
        await connection.execute(SERIES.insert().values(block))
        await connection.execute(RUNS.delete().where(RUNS.c.node == "n7"))
    points = (await compared.get("/api/v1/nodes/n7/history?metric=tflops"))["items"]
    assert [point["values"] for point in points] == [{"0": 70.0, "1": 50.0}]
    for metric in ("TFLOPS", "median", "verdicts"):
        await compared.refused(422, "GET", f"/api/v1/nodes/n7/history?metric={metric}")


async def test_an_unknown_check_of_a_history_is_refused(compared):
    """With the checks of the node; and so is a metric that another check measures."""
    path = "/api/v1/nodes/n7/history?metric=tflops"
    detail = await compared.refused(422, "GET", f"{path}&check=gem")
    assert detail.startswith("unknown check 'gem'; did you mean 'gemm'? (valid: ")
    other = "unknown metric of gemm: 'rpm' (valid: tflops)"
    assert await compared.refused(422, "GET", "/api/v1/nodes/n7/history?metric=rpm&check=gemm") == other


async def test_metrics_count_nodes_runs_and_refusals(fleet):
    """The exposition has what an operator watches."""
    await fleet.feed(report("n1", 1, 2))
    fleet.shell.link.of_nodes.refused["malformed"] += 1
    text = await fleet.get("/metrics")
    assert 'muster_messages_refused_total{kind="malformed"} 1.0' in text
    assert "muster_runs_total 2.0" in text
    assert "muster_nodes{" in text
    assert "muster_broker_connected 0.0" in text


async def test_metrics_name_what_is_bad(fleet):
    """Nodes and their places, finding codes, XIDs, GPUs, and who made the metrics."""
    gpus = tuple(Device(index=index, uuid=f"n2-{index}", model="H100") for index in range(8))
    made = Inventory(devices=gpus, topology=Topology(block="b1", rack="r2"))
    checks = (check_info("gemm", Scope.NODE),)
    await fleet.feed(InventorySeen(InventoryReport(sent_at=1.0, node="n2", inventory=made, checks=checks)))
    xid = Finding(code="kernel_log.xid", summary="", severity=Severity.ERROR, evidence={"xid": 79})
    (run,) = report("n2", 1).message.runs
    failed = tuple(
        run.model_copy(update={"id": f"n2-{seq}", "seq": seq, "verdict": Verdict.FAIL, "findings": (xid,)})
        for seq in (1, 2)
    )
    await fleet.feed(ReportSeen(Report(sent_at=time.time(), node="n2", stream="s", after=0, runs=failed)))
    lines = (await fleet.get("/metrics")).splitlines()
    service = 'service="ACCEPTING"'
    for line in (
        f'muster_bad_node{{block="b1",health="FAILED",lost="false",node="n2",rack="r2",{service}}} 1.0',
        f'muster_bad_node{{block="",health="UNKNOWN",lost="false",node="n1",rack="",{service}}} 1.0',
        "muster_bad_nodes_unnamed 0.0",
        f'muster_rack_nodes{{block="b1",health="FAILED",rack="r2",{service}}} 1.0',
        'muster_finding_nodes{code="kernel_log.xid"} 1.0',
        'muster_xid_nodes{xid="79"} 1.0',
        "muster_gpus 8.0",
        'muster_gpus_unavailable{reason="failed"} 8.0',
        'muster_nodes_untested{days="1"} 0.0',
        "muster_actions_pending 0.0",
        'muster_quarantine_info{mode="observe"} 1.0',
    ):
        assert line in lines
    (build,) = (line for line in lines if line.startswith("muster_build_info"))
    assert f'version="{__version__}"' in build


async def test_metrics_count_what_comparing_found(compared):
    """By code; fleet findings and summarised runs as well."""
    text = await compared.get("/metrics")
    for line in (
        'muster_compared{code="baseline.outlier"} 1.0',
        'muster_compared{code="baseline.fingerprint"} 0.0',
        "muster_baselines 1.0",
        "muster_fleet_findings 0.0",
        "muster_runs_summarised_total 0.0",
        "muster_runs_thinned_total 0.0",
    ):
        assert line in text.splitlines()
