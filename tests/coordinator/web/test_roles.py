"""Who may do what, for every route of the table; and who is recorded as having done it."""

from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, DummyCookieJar, TCPConnector
from tests.cases import cases
from tests.coordinator.web.messages import report

from muster.config import HttpSettings, Settings
from muster.errors import SettingsError
from muster_coordinator.web.guard import LOGIN, PLANS, Access, access_of, required_right
from muster_coordinator.web.proxies import TrustedProxies
from muster_coordinator.web.sessions import Right
from muster_coordinator.web.wrong_logins import BURST, PER_S

OPERATE, READ, REPORT = "operator-token", "reader-token", "reporter-token"
PROXY, ELSEWHERE = "127.0.0.2", "127.0.0.1"
REAL = {"node": "n1", "run": "r", "sweep": "s", "baseline": "b", "report": "a"}
SAME, OTHER = {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "cross-site"}
HOLD = "/api/v1/nodes/n1/hold"


@pytest.fixture
def access():
    return Access(OPERATE, Right.PROBE, "of http.token_file", READ, REPORT, TrustedProxies.of([PROXY]))


@pytest.fixture
def log_lines(capsys):
    """What has been logged since the last call."""
    return lambda: "".join(capsys.readouterr())


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def user(name, role=None):
    return {"X-Muster-User": name} | ({} if role is None else {"X-Muster-Role": role})


@asynccontextmanager
async def client(address=ELSEWHERE):
    """A client with this address, which keeps no cookies by itself."""
    connector = TCPConnector(local_addr=(address, 0), force_close=True)
    async with ClientSession(connector=connector, cookie_jar=DummyCookieJar()) as session:
        yield session


async def logged_in(session, api, token, **more):
    """The header with the cookie of a new session."""
    async with session.post(api.url + LOGIN, json={"token": token, **more}) as response:
        assert response.status == 201
        return {"Cookie": response.headers["Set-Cookie"].partition(";")[0]}


def every_route(api):
    """Method and path of all that is served."""
    routes = [(route.method, route.path) for route in api.shell.routes(api.store)]
    return [(method, path.format(**REAL)) for method, path in routes if method != "HEAD"]


async def walked(session, api, headers):
    """What a caller gets: for reading and for changing routes, the refusals with which all of them answer; 0 if none.

    A refusal of only some routes fails the test. Pages and their forms are routes as well.
    """
    found: dict[bool, set[int]] = {True: set(), False: set()}
    for method, path in every_route(api):
        if required_right(method, path) not in (Right.READ, Right.CHANGE) or path in PLANS:
            continue
        body: dict[str, Any] = {} if method in ("GET", "DELETE") else {"json": {}}
        async with session.request(method, api.url + path, headers=headers, **body) as response:
            refused = response.status in (401, 403)
            found[method == "GET"].add(response.status if refused else 0)
    (reading,), (changing,) = found[True], found[False]
    return reading, changing


async def test_every_route_asks_who_sends_the_request(fleet):
    """A table of callers, each at every route: whether it may read, and whether it may change something."""
    async with client() as elsewhere, client(PROXY) as proxy:
        operator = await logged_in(elsewhere, fleet, OPERATE)
        reader = await logged_in(elsewhere, fleet, READ)
        origin = {"Origin": fleet.url}
        table = [
            ("no token", elsewhere, {}, (401, 401)),
            ("a wrong token", elsewhere, bearer("wrong"), (401, 401)),
            ("a wrong session", elsewhere, {"Cookie": "muster_session=wrong"} | SAME, (401, 401)),
            ("the reader's token", elsewhere, bearer(READ), (0, 403)),
            ("the token for reports", elsewhere, bearer(REPORT), (0, 403)),
            ("the operator's token", elsewhere, bearer(OPERATE), (0, 0)),
            ("the operator's token, from any page", elsewhere, bearer(OPERATE) | OTHER, (0, 0)),
            ("the operator's session, own page", elsewhere, operator | SAME, (0, 0)),
            ("the operator's session, own page of an older browser", elsewhere, operator | origin, (0, 0)),
            ("the operator's session, no page", elsewhere, operator, (0, 403)),
            ("the operator's session, another page", elsewhere, operator | OTHER, (0, 403)),
            ("the operator's session, another origin", elsewhere, operator | {"Origin": "http://evil"}, (0, 403)),
            ("the reader's session, own page", elsewhere, reader | SAME, (0, 403)),
            ("an operator of the proxy, own page", proxy, user("ann", "operate") | SAME, (0, 0)),
            ("an operator of the proxy, no page", proxy, user("ann", "operate"), (0, 403)),
            ("an operator of the proxy, another page", proxy, user("ann", "operate") | OTHER, (0, 403)),
            ("a reader of the proxy, own page", proxy, user("ann", "read") | SAME, (0, 403)),
            ("somebody without a role at the proxy", proxy, user("ann") | SAME, (0, 403)),
            ("nobody at the proxy", proxy, SAME, (401, 401)),
            ("the proxy's headers from elsewhere", elsewhere, user("ann", "operate") | SAME, (401, 401)),
        ]
        got = {name: await walked(session, fleet, headers) for name, session, headers, _ in table}
    assert got == {name: expected for name, _, _, expected in table}


@cases("path", [*PLANS])
async def test_a_reader_may_plan_a_sweep(fleet, path):
    """It changes nothing. A browser must send it from a page of the same origin, as everything that has a body."""
    async with client() as elsewhere:
        reader = await logged_in(elsewhere, fleet, READ)
        for headers, status in [({}, 401), (bearer(READ), 0), (reader | SAME, 0), (reader | OTHER, 403)]:
            async with elsewhere.post(fleet.url + path, headers=headers, json={}) as response:
                assert (response.status if response.status in (401, 403) else 0) == status


async def test_a_form_counts_only_from_a_page_of_the_same_origin(fleet):
    """Even of those whose rights no browser sends by itself, such as everybody on this host."""
    async with client() as elsewhere:
        for headers, status in [({}, 403), (OTHER, 403), (SAME, 422)]:
            async with elsewhere.post(fleet.url + "/login", headers=headers, data={"next": "x"}) as response:
                assert response.status == status


async def test_too_many_wrong_tokens_are_refused(fleet):
    """For a while, and not the right one: others may come from the same address, such as that of a proxy."""
    async with client() as elsewhere:
        for status in [*[401] * int(BURST), 429]:
            async with elsewhere.post(fleet.url + LOGIN, json={"token": "wrong"}) as response:
                assert response.status == status
        assert 1 <= int(response.headers["Retry-After"]) <= 1 / PER_S
        await logged_in(elsewhere, fleet, READ)


async def test_who_has_not_logged_in_sends_no_large_body(fleet):
    """Anybody can send hundreds at the same time, and each would be in memory until it is whole."""
    async with client() as elsewhere:
        for path, large in [(LOGIN, {"json": {"token": "x" * 17_000}}), ("/login", {"data": {"token": "x" * 17_000}})]:
            async with elsewhere.post(fleet.url + path, headers=SAME, **large) as response:
                assert response.status == 413
        async with elsewhere.post(fleet.url + LOGIN, headers=bearer(READ), json={"token": "x" * 17_000}) as response:
            assert response.status == 401


async def test_logging_out_ends_the_streams_of_the_session(fleet):
    """Nothing more is sent, although the connection is still open."""
    async with client() as elsewhere:
        reader = await logged_in(elsewhere, fleet, READ)
        async with elsewhere.get(f"{fleet.url}/api/v1/events", headers=reader) as stream:
            assert await stream.content.readuntil(b"\n\n") == b": listening\n\n"
            async with elsewhere.delete(fleet.url + LOGIN, headers=reader | SAME) as response:
                assert response.status == 200
            await fleet.feed(report("n1", 1))
            assert await stream.content.read() == b""


async def test_a_login_gives_a_cookie_that_scripts_cannot_read(fleet, log_lines):
    """Neither the token nor the id of the session is in the answer or in the log."""
    async with client() as elsewhere, client(PROXY) as proxy:
        body = {"token": READ, "name": "ann"}
        async with elsewhere.post(fleet.url + LOGIN, json=body) as response:
            cookie, answer = response.headers["Set-Cookie"], await response.json()
        parts = cookie.split("; ")
        assert set(parts[1:]) == {"HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict"}
        assert (answer["name"], answer["role"]) == ("ann", "read")
        headers = {"Cookie": parts[0]}
        async with elsewhere.get(fleet.url + LOGIN, headers=headers) as response:
            assert await response.json() == answer
        for session, secure in ((proxy, True), (elsewhere, False)):
            async with session.post(fleet.url + LOGIN, json=body, headers={"X-Forwarded-Proto": "https"}) as response:
                assert ("Secure" in response.headers["Set-Cookie"]) is secure
        async with elsewhere.delete(fleet.url + LOGIN, headers=headers) as response:
            assert response.status == 403, "another page cannot log anybody out"
        async with elsewhere.delete(fleet.url + LOGIN, headers=headers | SAME) as response:
            assert (response.status, "Max-Age=0" in response.headers["Set-Cookie"]) == (200, True)
        async with elsewhere.get(fleet.url + LOGIN, headers=headers) as response:
            assert response.status == 401
    text = log_lines()
    assert "logged_in" in text
    assert [secret for secret in (READ, parts[0].partition("=")[2]) if secret in text or secret in str(answer)] == []


@cases(
    "body, status",
    [
        ({"token": "wrong"}, 401),
        ({"token": "\u00e9"}, 401),
        ({"token": ""}, 422),
        ({"token": 5}, 422),
        ({}, 422),
        ({"token": "wrong-secret", "name": "a\nb"}, 422),
        ({"token": "wrong-secret", "nothing": 1}, 422),
    ],
)
async def test_a_wrong_login_opens_no_session(fleet, body, status):
    """The refusal does not repeat what was given."""
    headers = {"Sec-Fetch-Site": "same-origin"}
    response, problem = await fleet.ask("POST", LOGIN, json=body, headers=headers)
    assert (response.status, "Set-Cookie" in response.headers) == (status, False)
    assert "wrong" not in problem["detail"].replace("the token is wrong", "")
    async with client() as session, session.post(fleet.url + LOGIN, json=body, headers=OTHER) as response:
        assert response.status == 403


async def test_who_has_logged_in_is_recorded(fleet, log_lines):
    """Not whom the body names; with a token, which is nobody's in particular, the body must name somebody."""
    await fleet.feed(report("n1", 1))
    async with client() as elsewhere, client(PROXY) as proxy:
        named = await logged_in(elsewhere, fleet, OPERATE, name="ann")
        nameless = await logged_in(elsewhere, fleet, OPERATE)
        for session, headers, by, recorded in [
            (elsewhere, named | SAME, "bob", "ann"),
            (elsewhere, named | SAME, None, "ann"),
            (proxy, user("eve@example.org", "operate") | SAME, "bob", "eve@example.org"),
            (elsewhere, nameless | SAME, "bob", "bob"),
            (elsewhere, bearer(OPERATE), "bob", "bob"),
        ]:
            body = {"reason": "a fan", **({} if by is None else {"by": by})}
            async with session.post(fleet.url + HOLD, headers=headers, json=body) as response:
                assert (await response.json())["hold"]["by"] == recorded
        async with elsewhere.post(fleet.url + HOLD, headers=bearer(OPERATE), json={"reason": "a fan"}) as response:
            assert (response.status, "'by'" in (await response.json())["detail"]) == (422, True)
        row = {"check": "gemm", "metric": "rpm", "fail_below": 5.0, "source": "a test"}
        for headers, set_by in ((named | SAME, "ann"), (bearer(OPERATE), None)):
            async with elsewhere.put(f"{fleet.url}/api/v1/references", headers=headers, json=row) as response:
                assert (await response.json()).get("set_by") == set_by
                assert [record.reference.set_by for record in (await fleet.store.saved()).references] == [set_by]
    lines = [line for line in log_lines().splitlines() if "change_requested" in line]
    assert [name in line for name, line in zip(("ann", "ann", "eve@example.org"), lines, strict=False)] == [True] * 3


@pytest.mark.parametrize(
    "headers",
    [[("X-Muster-User", "ann"), ("X-Muster-User", "eve")], [("X-Muster-User", "")], [*user("ann", "root").items()]],
)
async def test_headers_of_the_proxy_that_make_no_sense_are_refused(fleet, headers):
    """A second name may be the client's own, which the proxy has not removed."""
    async with client(PROXY) as proxy, proxy.get(f"{fleet.url}/api/v1/nodes", headers=headers) as response:
        assert (response.status, "X-Muster" in (await response.json())["detail"]) == (403, True)


async def test_a_proxy_may_say_under_which_name_it_is_reached(fleet):
    """The origin of its pages is then that name; only a trusted one may say so."""
    headers = user("ann", "operate") | {"Origin": "https://muster.example", "X-Forwarded-Host": "muster.example"}
    async with client(PROXY) as proxy, proxy.post(fleet.url + HOLD, headers=headers, json={"reason": "x"}) as response:
        assert response.status == 200
    async with client() as elsewhere:
        session = await logged_in(elsewhere, fleet, OPERATE)
        async with elsewhere.post(fleet.url + HOLD, headers=headers | session, json={"reason": "x"}) as response:
            assert response.status == 403


def test_two_tokens_are_read_from_the_settings(tmp_path):
    """They must differ, and none may be empty."""
    for name, text in (("operate", OPERATE), ("read", READ), ("empty", "\n")):
        (tmp_path / name).write_text(text)

    def made(read):
        http = HttpSettings(
            token_file=tmp_path / "operate", read_token_file=tmp_path / read, trusted_proxies=("10.1.0.0/16",)
        )
        return access_of(Settings(http=http))

    access = made("read")
    assert [access.right_of(token) for token in (OPERATE, READ, "", "x")] == [Right.CHANGE, Right.READ, None, None]
    assert len(access.proxies.networks) == 1
    for read, problem in (("operate", "same token"), ("empty", "is empty"), ("missing", "cannot read")):
        with pytest.raises(SettingsError, match=rf"http.read_token_file: .*{problem}"):
            made(read)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"read_token_file": "/etc/read"}, "read_token_file has no effect .* set http.token_file"),
        ({"trusted_proxies": ("10.1.0.0/16",)}, "trusted_proxies has no effect"),
        ({"token_file": "/etc/token", "trusted_proxies": ("10.1.0.1/16",)}, "'10.1.0.1/16' is no network"),
        ({"token_file": "/etc/token", "trusted_proxies": ("proxy",)}, "'proxy' is no network"),
    ],
)
def test_settings_for_roles_are_checked(settings, problem):
    """Without a token every local user may read, and a name is no network."""
    with pytest.raises(ValueError, match=problem):
        HttpSettings(**settings)
