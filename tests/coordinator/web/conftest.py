"""The API of a coordinator, with three nodes or a dozen."""

import json
import time
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, ClientTimeout
from aiohttp.test_utils import TestClient, TestServer
from tests.coordinator.offline_shell import EPOCH, offline_shell, running
from tests.coordinator.web.described import is_described
from tests.coordinator.web.messages import check_info, report

from muster.check import Scope, Worse
from muster.config import Config, Settings
from muster.http_server import serving
from muster.model import Inventory
from muster.plugins import Plugins
from muster.wire.messages import InventoryReport, Presence, Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, PresenceSeen, ReportSeen
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.store.store import Store
from muster_coordinator.web.guard import Access
from muster_coordinator.web.server import application, listen
from muster_coordinator.web.sessions import Right


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
            assert is_described(method, response.url.path, response.status), (method, path, response.status)
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
def access():
    return Access("any", Right.CHANGE, "")


@pytest.fixture
async def api(data_dir, access):
    settings = Settings(data_dir=data_dir)
    store = await Store.open(settings)
    pipeline = Pipeline(Fleet(name="default", epoch=EPOCH), store)
    pipeline.fleet.restore(await store.saved(), pipeline.clock())
    shell = offline_shell(settings, pipeline, store, Plugins(Config(settings)))
    listener, url = listen("127.0.0.1:0")
    async with running(shell), serving(application(shell.routes(store), access), listener):
        async with ClientSession(timeout=ClientTimeout(total=20)) as session:
            yield Api(session, url, shell, store)
        shell.stream.close()
        shell.changes.close()
    await store.close()


@pytest.fixture
async def fleet(api):
    """Three nodes that are there and know two checks."""
    now = api.shell.pipeline.clock()
    checks = (check_info("gemm", Scope.NODE), check_info("collective", Scope.GROUP, "busbw_gbps"))
    for node in ("n1", "n2", "n3"):
        await api.feed(PresenceSeen(Presence(sent_at=now, node=node, online=True)))
        await api.feed(InventorySeen(InventoryReport(sent_at=now, node=node, inventory=Inventory(), checks=checks)))
    return api


@pytest.fixture
async def compared(fleet):
    """A dozen nodes that have measured a compared metric three times, of which n7 is slow."""
    gemm = check_info("gemm", Scope.NODE).model_copy(update={"compared": {"tflops": Worse.LOWER}})
    nodes = [f"n{number}" for number in range(12)]
    for node in nodes:
        message = InventoryReport(sent_at=time.time(), node=node, inventory=Inventory(), checks=(gemm,))
        await fleet.feed(InventorySeen(message))
    for number, node in enumerate(nodes):
        runs = [
            run.model_copy(update={"metrics": {"tflops": [70.0, 50.0 if number == 7 else 70.0]}})
            for run in report(node, 1, 2, 3).message.runs
        ]
        await fleet.feed(ReportSeen(Report(sent_at=time.time(), node=node, stream=node, after=0, runs=tuple(runs))))
    return fleet


@pytest.fixture
def aiohttp_app():
    """Serves an application while the context lasts; gives a function that sends a request and returns the status."""

    @asynccontextmanager
    async def served(app):
        async with TestClient(TestServer(app)) as client:

            async def ask(method, path, headers=None):
                async with client.request(method, path, headers=headers) as response:
                    return response.status

            yield ask

    return served
