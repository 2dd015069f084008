"""Whom the API serves, and where it listens."""

import asyncio

import pytest

from muster.config import HttpSettings
from muster.errors import SettingsError, Unavailable
from muster_coordinator.web.guard import read_token
from muster_coordinator.web.server import listen

TOKEN = "a-secret"


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


async def test_not_alive_while_storing_hangs(api, monkeypatch):
    """Whoever probes is told to restart it, until storing goes on."""
    goes_on = asyncio.Event()
    monkeypatch.setattr("muster_coordinator.pipeline.STUCK_S", 0.3)
    monkeypatch.setattr(api.store, "write", lambda _commands: goes_on.wait())
    async with asyncio.timeout(20):
        while (await api.ask("GET", "/healthz"))[0].status == 200:
            await asyncio.sleep(0.05)
    assert "storing hangs" in await api.refused(503, "GET", "/healthz")
    goes_on.set()
    async with asyncio.timeout(20):
        while (await api.ask("GET", "/healthz"))[0].status == 503:
            await asyncio.sleep(0.05)
