"""The way to the API server may lead by a proxy, which the environment names or the kubeconfig."""

import asyncio
import json
import re
from contextlib import asynccontextmanager

import pytest

from muster import Effect
from muster_plugins.schedulers.kubernetes.proxy import proxy_for


class Proxy:
    """A proxy on loopback that connects to any host, and notes to which and with whose password.

    When it has a `refusal`, that is its answer instead.
    """

    def __init__(self):
        self.asked = []
        self.refusal = b""
        self.url = ""
        self._ways = set()

    @asynccontextmanager
    async def running(self):
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self
            server.close()
            for way in self._ways:
                way.cancel()
            await asyncio.gather(*self._ways, return_exceptions=True)

    async def _connect(self, reader, writer):
        self._ways.add(asyncio.current_task())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        method, target, _ = head[0].split()
        passwords = [line.partition(": ")[2] for line in head if line.startswith("Proxy-Authorization: ")]
        self.asked.append((method, target, *passwords))
        if self.refusal:
            writer.write(self.refusal)
            writer.close()
            return
        host, _, port = target.rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            back.close()
            writer.close()


async def _pump(source, sink):
    while chunk := await source.read(1 << 16):
        sink.write(chunk)
        await sink.drain()


@pytest.fixture
async def proxy():
    """A running proxy; see `Proxy`."""
    async with Proxy().running() as running:
        yield running


@pytest.fixture(autouse=True)
def no_proxy_from_outside(monkeypatch):
    """Keeps the proxies of whoever runs the tests out of them."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def test_the_proxy_of_the_environment_is_taken(standin, coordinator, proxy, monkeypatch):
    """With its password; it is looked for once, when the way is opened."""
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ada:secret@"))
    assert (await coordinator.tell()).effect is Effect.DONE
    assert proxy.asked == [("CONNECT", standin.url.removeprefix("https://"), "Basic YWRhOnNlY3JldA==")]
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert (await coordinator.tell("PROBATION")).effect is Effect.DONE


async def test_the_proxy_of_the_kubeconfig_goes_first(standin, new_coordinator, proxy, tmp_path, monkeypatch):
    """As it does for kubectl."""
    standin.add_node("n1")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    config = json.loads(standin.kubeconfig().read_text())
    config["clusters"][0]["cluster"]["proxy-url"] = proxy.url
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    assert (await new_coordinator({"kubeconfig": str(path)}).tell()).effect is Effect.DONE
    assert len(proxy.asked) == 1


async def test_a_proxy_that_is_not_there_is_named(standin, coordinator, monkeypatch):
    """Without its password, as it is not the API server that does not answer."""
    monkeypatch.setenv("HTTPS_PROXY", "http://ada:secret@127.0.0.1:1")
    detail = (await coordinator.tell()).detail
    assert f"no answer from {standin.url} through the proxy http://127.0.0.1:1: Connection refused" in detail
    assert "secret" not in detail


REFUSALS = {
    "a refusal": (b"HTTP/1.1 407 Nope\r\n\r\n", "the proxy says HTTP 407"),
    "what is no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "Bad status line: .* b'SSH-2.0-OpenSSH_9.2' .*"),
}


@pytest.mark.parametrize(("refusal", "said"), REFUSALS.values(), ids=REFUSALS)
async def test_what_a_proxy_says_is_told_without_its_password(coordinator, proxy, monkeypatch, refusal, said):
    """Be it that it wants another password, or that it is no proxy at all."""
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ada:secret@"))
    proxy.refusal = refusal
    outcome = await coordinator.tell()
    assert outcome.effect is Effect.FAILED
    assert re.search(f"through the proxy {proxy.url}: {said}$", outcome.detail)
    assert "secret" not in outcome.detail


INVALID = (
    "http://ada:secret@{}:99999",
    "http://ada:se/cret@{}:1",
    "http://ada:secret://secret@{}:1",
    "ada:secret@{}:1",
)


@pytest.mark.parametrize("url", INVALID)
async def test_a_proxy_s_url_that_is_none_keeps_its_password(coordinator, monkeypatch, url):
    """As it is when nobody has written / in a password as %2F."""
    monkeypatch.setenv("HTTPS_PROXY", url.format("127.0.0.1"))
    detail = (await coordinator.tell()).detail
    assert "127.0.0.1" in detail
    assert detail.endswith(": a URL that is not valid; in a password, / is written as %2F")
    assert not re.search("ada|secret|cret", detail)


async def test_what_netrc_says_is_not_for_the_api_server(coordinator, tmp_path, monkeypatch):
    """Who has a token shows no password besides."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login ada password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert (await coordinator.tell()).effect is Effect.DONE


P = "http://proxy:3128"

WAYS = {
    "nothing": ({}, "https://10.0.0.1", None),
    "a proxy": ({"HTTPS_PROXY": P}, "https://10.0.0.1", P),
    "in small letters": ({"https_proxy": P}, "https://10.0.0.1", P),
    "a proxy for others": ({"HTTP_PROXY": P}, "https://10.0.0.1", None),
    "an exception": ({"HTTPS_PROXY": P, "NO_PROXY": "a, 10.0.0.1"}, "https://10.0.0.1:6443", None),
    "an exception by domain": ({"HTTPS_PROXY": P, "NO_PROXY": ".svc"}, "https://kubernetes.default.svc", None),
    "no exception": ({"HTTPS_PROXY": P, "NO_PROXY": "10.0.0.2,.svc"}, "https://10.0.0.1", P),
    "an exception for all": ({"HTTPS_PROXY": P, "NO_PROXY": "*"}, "https://10.0.0.1", None),
    "a network": ({"HTTPS_PROXY": P, "NO_PROXY": "localhost, 10.0.0.0/8"}, "https://10.96.0.1:443", None),
    "another network": ({"HTTPS_PROXY": P, "NO_PROXY": "10.0.0.0/16"}, "https://10.96.0.1:443", P),
    "a network of IPv6": ({"HTTPS_PROXY": P, "NO_PROXY": "fd00::/8"}, "https://[fd00::1]:443", None),
    "a network, for a name": ({"HTTPS_PROXY": P, "NO_PROXY": "10.0.0.0/8"}, "https://kubernetes:443", P),
    "a network that is none": ({"HTTPS_PROXY": P, "NO_PROXY": "10.0.0.0/99"}, "https://10.0.0.1", P),
}


@pytest.mark.parametrize(("environment", "url", "expected"), WAYS.values(), ids=WAYS)
def test_the_environment_says_which_way_to_go(monkeypatch, environment, url, expected):
    """As it does for programs of Kubernetes, which know networks in NO_PROXY as well."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == expected
