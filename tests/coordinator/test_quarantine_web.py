"""The routes about service states: who is out and why, and what people may decide about it."""

import asyncio
import itertools

import pytest
from aiohttp import ClientSession, ClientTimeout

from muster import hookimpl
from muster.check import CheckInfo, Needs, Scope
from muster.config import Config, Settings
from muster.model import Action, Finding, Inventory, Run, Severity, Topology, Verdict
from muster.plugins import Plugins
from muster.quarantine_settings import BudgetSettings, MassEventSettings, QuarantineSettings
from muster.transition import ActionOutcome, Effect, Survey
from muster.wire.messages import InventoryReport, PluginInfo, Presence, Report
from muster_coordinator.acting import Acting
from muster_coordinator.daemon import Shell
from muster_coordinator.events import InventorySeen, PresenceSeen, ReportSeen
from muster_coordinator.fleet import Fleet
from muster_coordinator.link import Link
from muster_coordinator.notices import Notices
from muster_coordinator.pipeline import Pipeline
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.policy_file import shipped_rows
from muster_coordinator.store import Store
from muster_coordinator.stream import Stream
from muster_coordinator.surveying import Surveying
from muster_coordinator.thinning import Thinning
from muster_coordinator.web.server import application, listen, serving

NODES = ("n1", "n2", "n3", "n4")
WORD = {"by": "ann@ops", "reason": "swapping a fan"}
ROOT = "/api/v1/quarantine"
DECISIONS = ("/api/v1/nodes/n1/hold", "/api/v1/nodes/n1/release", f"{ROOT}/unfreeze")
NOT_SAID = (None, "", "  ", "two\nlines", "\x1b[2J", "\x00", "a\x9bm", "x" * 501)


class Scheduler:
    """An actor that does as it is told, or fails."""

    def __init__(self):
        self.outcome = ActionOutcome(effect=Effect.DONE, detail="drained")

    @hookimpl
    async def muster_survey(self):
        return Survey(summary="cluster c", can_cordon=True)

    @hookimpl
    async def muster_transition(self):
        return self.outcome


class Api:
    """The API of a coordinator whose broker is away, over a real socket, with nodes that pass all their checks."""

    def __init__(self, session, url, shell, scheduler):
        self.session = session
        self.url = url
        self.shell = shell
        self.scheduler = scheduler
        self._seq = dict.fromkeys(NODES, 0)

    async def ask(self, method, path, **options):
        async with self.session.request(method, self.url + path, **options) as response:
            return response.status, await response.json(content_type=None)

    async def get(self, path):
        status, answer = await self.ask("GET", path)
        assert status == 200, answer
        return answer

    async def text(self, path):
        async with self.session.get(self.url + path) as response:
            return await response.text()

    async def until(self, path, is_so):
        """The answer once it is so."""
        async with asyncio.timeout(5):
            while not is_so(answer := await self.get(path)):
                await asyncio.sleep(0.02)
        return answer

    async def post(self, path, **body):
        status, answer = await self.ask("POST", path, json=body)
        assert status == 200, answer
        return answer

    async def refused(self, status, path, body):
        given, problem = await self.ask("POST", path, json=body)
        assert given == status, problem
        return problem["detail"]

    async def feed(self, event):
        await self.shell.pipeline.feed(event).wait()

    async def join(self, node):
        now = self.shell.pipeline.clock()
        inventory = Inventory(topology=Topology(rack="r1"))
        await self.feed(PresenceSeen(Presence(sent_at=now, node=node, online=True)))
        await self.feed(InventorySeen(InventoryReport(sent_at=now, node=node, inventory=inventory, checks=(NVML,))))
        await self.report(node)

    async def report(self, node, *codes):
        """A run that finds these codes, all of them fatal by nature."""
        self._seq[node] += 1
        seq, now = self._seq[node], self.shell.pipeline.clock()
        findings = tuple(
            Finding(code=code, summary="it is gone", severity=Severity.ERROR, action=Action.REBOOT_NODE)
            for code in codes
        )
        run = Run(
            id=f"{node}-{seq}",
            node=node,
            check="nvml",
            verdict=Verdict.FAIL if codes else Verdict.PASS,
            findings=findings,
            started_at=now,
            duration_s=0.1,
            seq=seq,
        )
        await self.feed(ReportSeen(Report(sent_at=now, node=node, stream=node, after=seq - 1, runs=(run,))))


NVML = CheckInfo(
    name="nvml",
    summary="",
    scope=Scope.NODE,
    needs=Needs.NOTHING,
    cadence_s=60.0,
    timeout_s=1.0,
    objective=None,
    params={"type": "object", "properties": {}},
)


@pytest.fixture
def trusted():
    return True


@pytest.fixture
def rules():
    return QuarantineSettings(mode="enforce", budget=BudgetSettings(share="50%", domain_share="100%", per_minute=6000))


@pytest.fixture
async def api(tmp_path, trusted, rules):
    settings = Settings(data_dir=tmp_path)
    store = await Store.open(settings)
    pipeline = Pipeline(Fleet(name="default", epoch=3, rules=rules, policy=Policy(shipped_rows())), store)
    pipeline.submit(pipeline.fleet.restore(await store.saved(), pipeline.clock()))
    link = Link(settings, broker_url="mqtt://127.0.0.1:1", api_url="", epoch=3, deliver=pipeline.take)
    plugins, scheduler = Plugins(Config(settings)), Scheduler()
    plugins.add(PluginInfo(name="slurm", distribution=None, version=None, status="loaded"), lambda: scheduler)
    shell = Shell(
        pipeline,
        link,
        Stream(3),
        Notices(plugins),
        Acting(plugins, pipeline.feed),
        Surveying(plugins, 3600.0, pipeline.take),
        Thinning(store.database, settings.store, pipeline.clock),
    )
    listener, url = listen("127.0.0.1:0")
    async with shell.running(), serving(application(shell.routes(store, trusted=trusted), None), listener):
        async with ClientSession(timeout=ClientTimeout(total=20)) as session:
            api = Api(session, url, shell, scheduler)
            for node in NODES:
                await api.join(node)
            yield api
        shell.stream.close()
    await store.close()


def nodes_of(page):
    return [item["node"] for item in page["items"]]


def are_out(*nodes):
    """Whether a list tells that these are out of service, and what came of it."""

    def is_so(page):
        return [it["node"] for it in page["items"] if it["state"] == "CORDONED" and it["outcomes"]] == [*nodes]

    return is_so


async def test_a_fleet_that_is_well_is_not_listed(api):
    """All nodes are in service, and the budget counts them."""
    assert await api.get(ROOT) == {"items": [], "next_cursor": None}
    budget = await api.until(f"{ROOT}/budget", lambda answer: answer["actors"])
    assert budget["actors"] == [{"name": "slurm", "summary": "cluster c", "can_cordon": True, "problem": None}]
    view = budget["quarantine"]
    assert (view["mode"], view["nodes"], view["away"], view["limit"]) == ("enforce", 4, 0, 2)
    case = await api.get("/api/v1/nodes/n1/case")
    assert (case["state"], case["place"], case["demand"]) == ("IN_SERVICE", "r1", None)


async def test_a_bad_node_is_listed_with_the_reason_and_what_was_done(api):
    """In the list, in its case, in the budget, in the history and in its story."""
    await api.report("n2", "nvml.device_lost")
    (listed,) = (await api.until(ROOT, are_out("n2")))["items"]
    assert (listed["demand"]["row"], listed["demand"]["codes"]) == ("gpu-lost", ["nvml.device_lost"])
    assert (listed["outcomes"]["slurm"]["effect"], listed["outcomes"]["slurm"]["detail"]) == ("DONE", "drained")
    assert await api.get("/api/v1/nodes/n2/case") == listed
    view = (await api.get(f"{ROOT}/budget"))["quarantine"]
    assert (view["away"], view["domains"]) == (1, [{"name": "r1", "nodes": 4, "away": 1, "limit": 4}])
    (latest, *_) = (await api.until(f"{ROOT}/history?node=n2", lambda page: page["items"][0]["told"]))["items"]
    assert (latest["transition"]["id"], latest["transition"]["after"]) == (listed["transition"], "CORDONED")
    story = (await api.get("/api/v1/nodes/n2/story"))["items"]
    assert [entry["kind"] for entry in reversed(story)][-5:] == ["found", "health", "policy", "service", "action"]


async def test_an_action_that_fails_is_seen(api):
    """With how often it was tried and when it is tried again."""
    api.scheduler.outcome = ActionOutcome(effect=Effect.FAILED, detail="no such node", retry_after_s=600.0)
    await api.report("n1", "nvml.device_lost")
    (listed,) = (await api.until(ROOT, are_out("n1")))["items"]
    outcome = listed["outcomes"]["slurm"]
    assert (outcome["effect"], outcome["detail"], outcome["tries"]) == ("FAILED", "no such node", 1)
    assert outcome["next_try"] > outcome["at"]
    metrics = await api.text("/metrics")
    assert 'muster_actions_failing{actor="slurm"} 1.0' in metrics


async def test_the_figures_tell_of_the_quarantine(api):
    """Who is away and may be, what has changed, and whether the actors work."""
    await api.until(f"{ROOT}/budget", lambda answer: answer["actors"])
    for node in ("n1", "n2", "n3"):
        await api.report(node, "nvml.device_lost")
    await api.until(ROOT, are_out("n1", "n2"))
    lines = (await api.text("/metrics")).splitlines()
    told = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
    quarantine = {name: told[f"muster_quarantine_{name}"] for name in ("limit", "away", "held", "frozen")}
    assert quarantine == {"limit": 2, "away": 2, "held": 1, "frozen": 0}
    assert told['muster_service_changes_total{service="CORDONED"}'] == 2
    assert told['muster_service_changes_total{service="IN_SERVICE"}'] == 4
    assert told['muster_actor_works{actor="slurm"}'] == 1
    assert told['muster_actions_failing{actor="slurm"}'] == 0


async def test_who_has_to_wait_is_held_and_says_why(api):
    """The budget of half the fleet is used up by two."""
    for node in ("n1", "n2", "n3"):
        await api.report(node, "nvml.device_lost")
    listed = (await api.until(ROOT, are_out("n1", "n2")))["items"]
    assert (listed[2]["node"], listed[2]["state"]) == ("n3", "HELD")
    assert "at most 2 of 4" in listed[2]["held_because"]
    assert (await api.get(f"{ROOT}/budget"))["quarantine"]["held"] == ["n3"]


async def test_a_held_node_is_left_alone_until_it_is_released(api):
    """Who holds it and why stands in the list; what is then done follows from how it is then."""
    held = await api.post("/api/v1/nodes/n1/hold", **WORD)
    assert (held["hold"]["by"], held["hold"]["reason"]) == ("ann@ops", "swapping a fan")
    await api.report("n1", "nvml.device_lost")
    (listed,) = (await api.get(ROOT))["items"]
    assert (listed["node"], listed["state"], listed["demand"]["row"]) == ("n1", "IN_SERVICE", "gpu-lost")
    released = await api.post("/api/v1/nodes/n1/release", **WORD)
    assert released["hold"] is None
    await api.until(ROOT, are_out("n1"))


async def test_a_node_can_be_released_untested(api):
    """It is back at once, what stood against it counts no more, and the history says on whose word."""
    await api.report("n1", "nvml.device_lost")
    await api.until(ROOT, are_out("n1"))
    back = await api.post("/api/v1/nodes/n1/release", **WORD, untested=True)
    assert (back["state"], back["demand"]) == ("IN_SERVICE", None)
    (latest, *_) = (await api.get(f"{ROOT}/history"))["items"]
    assert (latest["transition"]["after"], latest["transition"]["by"]) == ("IN_SERVICE", "ann@ops")


async def test_there_must_be_something_to_release(api):
    """One that is in service and that nobody holds is not released."""
    said = await api.refused(422, "/api/v1/nodes/n1/release", WORD)
    assert "nothing to release n1 from" in said


async def test_an_unknown_node_is_refused(api):
    """Also its history: an empty list would say that nothing has ever happened to it."""
    for method, path in (("POST", "nodes/n9/hold"), ("POST", "nodes/n9/release"), ("GET", "nodes/n9/case")):
        status, problem = await api.ask(method, f"/api/v1/{path}", json=WORD if method == "POST" else None)
        assert (status, problem["detail"].startswith("unknown node 'n9'")) == (404, True)
    status, problem = await api.ask("GET", f"{ROOT}/history?node=n9")
    assert (status, problem["detail"].startswith("unknown node 'n9'")) == (404, True)


async def test_a_decision_carries_who_and_why(api):
    """In one line of text each, with something to read; nothing changes without."""
    for path, name, text in itertools.product(DECISIONS, ("by", "reason"), NOT_SAID):
        body = {key: value for key, value in {**WORD, name: text}.items() if value is not None}
        assert f"field {name!r}" in await api.refused(422, path, body)
    for path in DECISIONS:
        assert "'force'" in await api.refused(422, path, {**WORD, "force": True})
    assert await api.get(ROOT) == {"items": [], "next_cursor": None}


async def test_lists_come_in_pages(api):
    """Cases by node, transitions with the latest first."""
    for node in ("n1", "n2"):
        await api.report(node, "nvml.device_lost")
    await api.until(ROOT, are_out("n1", "n2"))
    first = await api.get(f"{ROOT}?limit=1")
    second = await api.get(f"{ROOT}?limit=1&cursor={first['next_cursor']}")
    assert (nodes_of(first), nodes_of(second), second["next_cursor"]) == (["n1"], ["n2"], None)
    seen, cursor = [], ""
    while cursor is not None:
        page = await api.get(f"{ROOT}/history?limit=4{cursor and '&cursor=' + cursor}")
        seen += [(it["transition"]["node"], it["transition"]["after"]) for it in page["items"]]
        cursor = page["next_cursor"]
    assert seen[:2] == [("n2", "CORDONED"), ("n1", "CORDONED")]
    assert sorted(seen[2:]) == [(node, "IN_SERVICE") for node in NODES]
    for path in (ROOT, f"{ROOT}/history"):
        status, problem = await api.ask("GET", f"{path}?cursor=nonsense")
        assert (status, "cursor" in problem["detail"]) == (422, True)


@pytest.mark.parametrize("trusted", [False])
async def test_without_trust_people_may_look_and_not_decide(api):
    """The answer says what to set; nothing has changed."""
    for path in DECISIONS:
        detail = await api.refused(403, path, WORD)
        assert "http.token_file" in detail
        assert "quarantine.trust_loopback" in detail
    assert (await api.get("/api/v1/nodes/n1/case"))["hold"] is None
    await api.get(ROOT)
    await api.get(f"{ROOT}/budget")
    await api.get(f"{ROOT}/history")


@pytest.mark.parametrize(
    "rules",
    [
        QuarantineSettings(
            mode="enforce", budget=BudgetSettings(share="50%", per_minute=6000), mass_event=MassEventSettings(nodes=2)
        )
    ],
)
async def test_a_freeze_is_shown_and_can_be_lifted(api):
    """Two nodes with the same are one event here: none goes before somebody says that it is their own fault."""
    await api.report("n1", "nvml.device_lost")
    await api.report("n2", "nvml.device_lost")
    (frozen,) = (await api.get(f"{ROOT}/budget"))["quarantine"]["frozen"]
    assert (frozen["cause"], frozen["nodes"]) == ("nvml.device_lost", 2)
    lifted = await api.post(f"{ROOT}/unfreeze", **WORD)
    assert lifted["quarantine"]["frozen"] == []
    await api.until(ROOT, are_out("n1", "n2"))
    assert "nothing is frozen" in await api.refused(422, f"{ROOT}/unfreeze", WORD)
