"""The API of a coordinator with a scheduler and four nodes, to be asked about service states."""

import asyncio

import pytest
from aiohttp import ClientSession, ClientTimeout
from tests.coordinator.offline_shell import EPOCH, offline_shell, running
from tests.coordinator.web.described import is_described
from tests.waiting import PATIENCE_S

from muster import hookimpl
from muster.check import CheckInfo, Needs, Scope
from muster.config import Config, Settings
from muster.http_server import serving
from muster.model import Action, Finding, Inventory, Run, Severity, Topology, Verdict
from muster.plugins import Plugins
from muster.quarantine_settings import BudgetSettings, QuarantineSettings
from muster.transition import ActionOutcome, Effect, Survey
from muster.wire.messages import InventoryReport, PluginInfo, Presence, Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, PresenceSeen, ReportSeen
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.runtime.settings.policy_file import shipped_rows
from muster_coordinator.store.store import Store
from muster_coordinator.web.guard import Access
from muster_coordinator.web.server import application, listen
from muster_coordinator.web.sessions import Right

NODES = ("n1", "n2", "n3", "n4")
ROOT = "/api/v1/quarantine"


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
            assert is_described(method, response.url.path, response.status), (method, path, response.status)
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
        async with asyncio.timeout(PATIENCE_S):
            while not is_so(answer := await self.get(path)):
                await asyncio.sleep(0.02)
        return answer

    async def until_out(self, *nodes):
        """The list, once it tells that these are out of service and what came of it."""

        def is_so(page):
            return [it["node"] for it in page["items"] if it["state"] == "CORDONED" and it["outcomes"]] == [*nodes]

        return (await self.until(ROOT, is_so))["items"]

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

    async def lose(self, node):
        """The broker says that a node's connection has ended."""
        now = self.shell.pipeline.clock()
        await self.feed(PresenceSeen(Presence(sent_at=now, node=node, online=False, goodbye=True)))

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
def rules():
    return QuarantineSettings(mode="enforce", budget=BudgetSettings(share="50%", domain_share="100%", per_minute=6000))


@pytest.fixture
async def api(data_dir, rules):
    settings = Settings(data_dir=data_dir)
    store = await Store.open(settings)
    pipeline = Pipeline(Fleet(name="default", epoch=EPOCH, rules=rules, policy=Policy(shipped_rows())), store)
    pipeline.submit(pipeline.fleet.restore(await store.saved(), pipeline.clock()))
    plugins, scheduler = Plugins(Config(settings)), Scheduler()
    plugins.add(PluginInfo(name="slurm", distribution=None, version=None, status="loaded"), lambda: scheduler)
    shell = offline_shell(settings, pipeline, store, plugins)
    listener, url = listen("127.0.0.1:0")
    async with running(shell), serving(application(shell.routes(store), Access("any", Right.CHANGE, "")), listener):
        async with ClientSession(timeout=ClientTimeout(total=20)) as session:
            api = Api(session, url, shell, scheduler)
            for node in NODES:
                await api.join(node)
            yield api
        shell.stream.close()
        shell.changes.close()
    await store.close()
