"""Whom the API serves, and where it listens."""

import asyncio
import stat

import pytest
from aiohttp import web
from tests.cases import cases

from muster.config import HttpSettings, Settings
from muster.errors import SettingsError, Unavailable
from muster.local_token import NAME, find_token
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.web.guard import Access, access_of, guard
from muster_coordinator.web.problems import as_problems
from muster_coordinator.web.server import listen
from muster_coordinator.web.sessions import Right

TOKEN = "a-secret"


@cases("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "[", "10.0.0.1"])
async def test_other_names_than_loopback_are_refused_without_a_token(api, host):
    """A web page that resolves its own name to 127.0.0.1 gets nothing."""
    await api.refused(403, "GET", "/api/v1/nodes", headers={"Host": host})


@cases("host", ["localhost", "127.0.0.1:9", "[::1]:8787", "LOCALHOST:1"])
async def test_loopback_names_are_taken(api, host):
    """However loopback is written."""
    response, _ = await api.ask("GET", "/api/v1/nodes", headers={"Host": host})
    assert response.status == 200


class TestWithAToken:
    """Every route but the probes needs the token."""

    @pytest.fixture
    def access(self):
        return Access(TOKEN, Right.PROBE, "of http.token_file")

    @cases("given", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"])
    @cases("path", ["/api/v1/nodes", "/api/v1/events", "/metrics", "/nothing"])
    async def test_who_does_not_bear_it_is_refused(self, api, given, path):
        """401 that says which scheme is expected."""
        headers = {} if given is None else {"Authorization": given}
        response, _ = await api.ask("GET", path, headers=headers)
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")

    @cases("scheme", ["Bearer", "bearer"])
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
        access_of(Settings(http=HttpSettings(token_file=file)))


def changes(api):
    """Method and path of every route and form that changes something, from the whole route table."""
    routes = [(route.method, route.path) for route in api.shell.routes(api.store)]
    paths = [(method, path.format(node="n1", run="r", sweep="s", baseline="b", report="a")) for method, path in routes]
    return [(method, path) for method, path in paths if method not in ("GET", "HEAD") and not path.endswith("/plan")]


class TestOnLoopbackWithoutATokenFile:
    """Every user may read, and only users with the coordinator's own token may make changes."""

    @pytest.fixture
    def access(self):
        return Access(TOKEN, Right.READ, "in /data/api_token")

    async def test_every_route_that_changes_something_is_refused(self, fleet):
        """The refusal says where the token is. The body does not matter, and is not read."""
        before = [await fleet.get(path) for path in ("/api/v1/sweeps", "/api/v1/references", "/api/v1/nodes/n1/story")]
        assert len(changes(fleet)) >= 10
        for method, path in changes(fleet):
            for options in ({}, {"json": {"by": "me", "reason": "mine"}}, {"headers": {"Authorization": "Bearer no"}}):
                assert "/data/api_token" in await fleet.refused(403, method, path, **options)
        after = [await fleet.get(path) for path in ("/api/v1/sweeps", "/api/v1/references", "/api/v1/nodes/n1/story")]
        assert after == before

    async def test_a_refusal_arrives_before_the_body_is_sent(self, fleet):
        """The connection stays open for clients that send the body later, so that they can read the refusal."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(fleet.url.rpartition(":")[2]))
        async with asyncio.timeout(20):
            writer.write(b"POST /api/v1/sweeps HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 403 ")
            writer.write(b"x" * 70_000 + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"HTTP/1.1 200 OK" in await reader.read()
        writer.close()

    async def test_a_request_with_the_token_reaches_the_route(self, fleet):
        """The route answers, or refuses the request for another reason."""
        for method, path in changes(fleet):
            response, _ = await fleet.ask(method, path, headers={"Authorization": f"Bearer {TOKEN}"})
            assert response.status not in (401, 403)

    async def test_reading_is_free(self, fleet):
        """Decisions and metrics, too."""
        for path in ("/healthz", "/api/v1/nodes", "/api/v1/quarantine/history", "/metrics"):
            await fleet.get(path)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "LOCK"])
async def test_a_new_route_is_guarded_too(aiohttp_app, method):
    """The rule depends on the method only, and applies to every route."""
    changed = []

    async def change(_request):
        changed.append(True)
        return web.Response()

    app = web.Application(middlewares=[as_problems, guard(Access(TOKEN, Right.READ, ""))])
    app.add_routes([web.route(method, "/new", change)])
    async with aiohttp_app(app) as ask:
        assert (await ask(method, "/new"), changed) == (403, [])
        assert (await ask(method, "/new", {"Authorization": f"Bearer {TOKEN}"}), changed) == (200, [True])


@pytest.mark.parametrize(
    ("settings", "right"),
    [
        ({}, Right.READ),
        ({"http": HttpSettings(trust_loopback=True)}, Right.CHANGE),
        ({"quarantine": QuarantineSettings(trust_loopback=True)}, Right.CHANGE),
    ],
)
def test_the_settings_can_trust_loopback(tmp_path, settings, right):
    """`quarantine.trust_loopback` is the older name of `http.trust_loopback`."""
    assert access_of(Settings(data_dir=tmp_path, **settings)).without_token is right


def test_trust_loopback_does_not_override_a_token_file(tmp_path):
    """Every request needs the token then."""
    (tmp_path / "token").write_text(TOKEN)
    http = HttpSettings(token_file=tmp_path / "token", trust_loopback=True)
    assert access_of(Settings(data_dir=tmp_path, http=http)).without_token is Right.PROBE


def test_the_coordinator_s_own_token_is_new_and_private(tmp_path):
    """Each start writes another token, which only the coordinator's user can read."""
    data_dir = tmp_path / "data"
    first = access_of(Settings(data_dir=data_dir)).token
    (data_dir / NAME).chmod(0o644)
    second = access_of(Settings(data_dir=data_dir)).token
    assert len(first) >= 32
    assert first != second == find_token(data_dir, "http://127.0.0.1:8787")
    assert stat.S_IMODE((data_dir / NAME).stat().st_mode) == 0o600
    assert [path.name for path in data_dir.iterdir()] == [NAME]


@pytest.mark.parametrize("url", ["http://muster.example:8787", "http://10.0.0.1:8787", "http://127.0.0.1.evil.example"])
def test_the_coordinator_s_own_token_is_sent_to_this_host_only(tmp_path, url):
    """Another host could misuse it."""
    access_of(Settings(data_dir=tmp_path))
    assert find_token(tmp_path, url) is None
    assert find_token(tmp_path, "http://localhost:1") is not None


def test_a_data_dir_that_cannot_be_written_is_named(tmp_path):
    """The error names the setting."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"cannot write .*data_dir"):
        access_of(Settings(data_dir=tmp_path / "file"))


def test_a_taken_port_is_named():
    """The message names the setting."""
    listener, url = listen("127.0.0.1:0")
    with listener, pytest.raises(Unavailable, match=r"http.listen: cannot listen on .*in use"):
        listen(url.removeprefix("http://"))


async def test_the_liveness_probe_fails_while_storing_hangs(api, monkeypatch):
    """It passes again when storing continues."""
    goes_on = asyncio.Event()
    monkeypatch.setattr("muster_coordinator.runtime.pipeline.STUCK_S", 0.3)
    monkeypatch.setattr(api.store, "write", lambda _commands: goes_on.wait())
    async with asyncio.timeout(20):
        while (await api.ask("GET", "/healthz"))[0].status == 200:
            await asyncio.sleep(0.05)
    assert "storing has hung" in await api.refused(503, "GET", "/healthz")
    goes_on.set()
    async with asyncio.timeout(20):
        while (await api.ask("GET", "/healthz"))[0].status == 503:
            await asyncio.sleep(0.05)
