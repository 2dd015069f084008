"""A stand-in for the Kubernetes API, in the test's own process or beside it, and an operator with kubectl."""

import json
import ssl

import aiohttp
import pytest
from benchmarks.kubernetes_standin.child import Child
from benchmarks.kubernetes_standin.kubectl import Kubectl
from benchmarks.kubernetes_standin.server import ADMIN, StandIn


@pytest.fixture
async def standin(live, tmp_path):
    """A server with no nodes and one user, the administrator; see `StandIn`."""
    directory = tmp_path / "kubernetes"
    directory.mkdir()
    async with StandIn(directory) as running:
        yield running


@pytest.fixture
async def kubectl(standin):
    """The administrator at the server: `await kubectl.cordon("n1")`; see `Kubectl`."""
    async with Kubectl(standin.kubeconfig()) as operator:
        yield operator


@pytest.fixture
def new_standin_process(live, tmp_path_factory):
    """Makes servers of their own processes, each for as long as its context lasts: `new_standin_process(nodes=3)`."""

    def make(nodes: int = 0) -> Child:
        return Child(tmp_path_factory.mktemp("kubernetes"), nodes)

    return make


class Client:
    """Asks the server without knowing anything of Kubernetes."""

    def __init__(self, standin: StandIn, session: aiohttp.ClientSession) -> None:
        self._standin = standin
        self.session = session

    def open(self, method: str, path: str, body=None, *, user=ADMIN, content_type="application/json", **query):
        """The response itself, as a context."""
        token = json.loads(self._standin.kubeconfig(user).read_text())["users"][0]["user"]["token"]
        return self.session.request(
            method,
            f"{self._standin.url}{path}",
            data=None if body is None else json.dumps(body),
            params=query,
            headers={"Authorization": f"Bearer {token}", "Content-Type": content_type, "User-Agent": "curl/8.14.1"},
        )

    async def ask(self, method: str, path: str, body=None, **more):
        """The HTTP status, and the body as JSON or, where it is none, as text."""
        async with self.open(method, path, body, **more) as response:
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" else text

    async def apply(self, path: str, config, manager: str = "muster", **more):
        """A server-side apply of `config`, of which kind and apiVersion are added."""
        body = {"apiVersion": "v1", "kind": "Node", **config}
        options = {"content_type": "application/apply-patch+yaml", "fieldManager": manager, **more}
        return await self.ask("PATCH", path, body, **options)


@pytest.fixture
async def client(standin):
    """A plain HTTPS client of the server, which trusts it: `await client.ask("GET", "/api/v1/nodes")`."""
    context = ssl.create_default_context(cafile=standin.authority)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        yield Client(standin, session)
