"""No request to any route causes an internal error."""

import json
import random
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from tests.cases import cases
from tests.coordinator.web.acceptances import acceptance, sent
from yarl import URL

from muster_coordinator.store.paging import make_cursor
from muster_coordinator.web.route_table import ROUTES

ROUNDS = 3
"""How often each query and each field of a body gets a random odd value."""

INTEGERS = [0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400]
NUMBERS = [*INTEGERS, 0.5, -0.0, 1e308, 1e-320, 5e-324]
ODD_NUMBERS: list[Any] = [float("nan"), float("inf"), float("-inf"), True, None]
ODD_TEXTS = ["", " ", "\x00", "a\x00b", "\x1b[31m", "\n", "\u202e", "\ud800", "\udfff\ud800", "\u0663", "\U0010ffff"]
WORDS = [
    "n1",
    "gemm",
    "null",
    "true",
    "NaN",
    "Infinity",
    "-0",
    "1e999",
    "%",
    "%s",
    "%%00",
    "'",
    '"',
    "';--",
    "{0}",
    "json",
]
PATHS = ["..", "../..", "/", "\\", "é" * 300, "x" * 4000, "9" * 5000]
INSTANTS = ["2026-01-31T12:00:00Z", "9999-12-31T23:59:59.9-23:59", "0001-01-01T00:00:00+23:59", "2026-01-31"]
SELECTIONS = ["nodes=n1 rack=r1", "rack=", "(((", "[", "n[1-99999999999]", "n[1-3],n["]
TEXTS = [*ODD_TEXTS, *WORDS, *PATHS, *INSTANTS, *SELECTIONS]
CURSORS = [
    *(make_cursor(part) for part in (*TEXTS, *NUMBERS, *ODD_NUMBERS)),
    *(make_cursor(number, text) for number in (*NUMBERS, *ODD_NUMBERS) for text in ("r", "\x00", "\ud800")),
    *TEXTS,
    *("W10", "e30", "W1tdXQ", "AAAA", "____", "=", "W" * 2001, make_cursor("a" * 3000)),
]
PATHS_OF_LISTS = {route.path for route in ROUTES if route.query is not None and "cursor" in route.query.model_fields}
"""Where a cursor is read. Elsewhere it is one of the parameters that a route does not know."""

DEEP = b"[" * 3000 + b"]" * 3000
QUERIES = ["limit", "cursor", "node", "check", "verdict", "since", "until", "metric", "device", "format", "when"]
QUERIES += ["sort", "by", "select", "points", "odd"]
REFERENCE = {"check": "gemm", "metric": "tflops", "warn_below": 1.0, "fail_below": 0.5, "source": "me", "when": {}}
SWEEP = {"check": "collective", "strategy": "pairs", "nodes": ["n1", "n2"], "params": {}, "max_parallel": 1}
DECISION = {"by": "me", "reason": "mine", "untested": True}
BODIES: dict[str, dict[str, Any]] = {
    "runs": {"check": "gemm", "params": {"size": 1}},
    "sweeps": SWEEP,
    "plan": SWEEP,
    "references": REFERENCE,
    "acceptance": sent(acceptance("n1", "n2")),
    "session": {"token": "secret", "name": "ann"},
}
"""Valid bodies, by the last word of the path; all other routes take a decision."""

RAW = [b"", b"{", b"[]", b"null", b'"', b"\xff\xfe", b"{}", b'{"a":NaN}', b'{"a":1,"a":2}', b"1" * 5000, DEEP]
RAW += [b'{"by":"\\ud800","reason":"x"}', b'{"check":' + DEEP + b"}"]


SENTENCE = "cursor: not one that this API returned; leave it out to start from the first page"
TITLE = HTTPStatus.UNPROCESSABLE_ENTITY.phrase  # "Unprocessable Content" since Python 3.13
REFUSAL = json.dumps({"type": "about:blank", "title": TITLE, "status": 422, "detail": SENTENCE})


def escaped(text):
    return quote(text.encode(errors="surrogatepass"), safe="")


def odd_value(chance, depth=0):
    kinds = [*NUMBERS, *TEXTS, None, True, False]
    pick = chance.random()
    if depth < 3 and pick < 0.15:
        return [odd_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if depth < 3 and pick < 0.3:
        return {chance.choice(TEXTS): odd_value(chance, depth + 1) for _ in range(chance.randrange(4))}
    return chance.choice(kinds)


def bodies(path, chance):
    """A valid body with each field in turn replaced by an odd value, and bodies that are no JSON objects."""
    fit = BODIES.get(path.rsplit("/", 1)[-1], DECISION)
    for name in [*fit, "odd"]:
        for _ in range(ROUNDS):
            yield json.dumps({**fit, name: odd_value(chance)}).encode()
    yield from RAW


def targets(path, chance):
    """The path with odd texts in the places of its parameters, and with odd queries."""
    fit = path.format(node="n1", run="n1-1", sweep="s", baseline="b", report="a")
    if fit != path:
        for text in TEXTS:
            yield path.format(**dict.fromkeys(("node", "run", "sweep", "baseline", "report"), escaped(text)))
    for name in QUERIES:
        yield f"{fit}?{name}={escaped(chance.choice(TEXTS))}"
        for _ in range(ROUNDS):
            other, number = chance.choice(QUERIES), str(chance.choice(NUMBERS))
            values = {"metric": "tflops", name: chance.choice(TEXTS), other: number}
            yield f"{fit}?" + "&".join(f"{key}={escaped(value)}" for key, value in values.items())
    for cursor in CURSORS if path in PATHS_OF_LISTS else ():
        yield f"{fit}?cursor={escaped(cursor)}"
        yield f"{fit}?metric=tflops&cursor={escaped(cursor)}"
    yield from (f"{fit}?%ff=%ff", f"{fit}?&&==&", f"{fit}?limit=1&limit=2", f"{fit}?a%00=b", f"{fit}/", f"{fit}%2f..")


async def test_no_request_is_an_internal_error(compared):
    """Every route answers odd values in its path, query and body with a status below 500."""
    chance = random.Random(12)
    asked, failed = 0, []
    for route in ROUTES:
        if route.path.endswith(("/events", "/changes", "/readyz")):
            continue
        for target in targets(route.path, chance):
            asked += 1
            failed += await failure(compared, route.method, target, b"{}" if route.method != "GET" else None)
        if route.method in ("POST", "PUT"):
            for body in bodies(route.path, chance):
                asked += 1
                failed += await failure(compared, route.method, route.path.format(node="n1"), body)
    assert asked > 5_000
    assert failed == []


async def failure(api, method, target, body):
    """The request and its status, if it failed with an internal error."""
    headers = {} if body is None else {"Content-Type": "application/json"}
    url = URL(api.url + target, encoded=True)
    async with api.session.request(method, url, data=body, headers=headers, allow_redirects=False) as response:
        await response.read()
        return [(response.status, method, target, body)] if response.status >= 500 else []


@cases(
    "path",
    [
        "/api/v1/runs?limit=1",
        "/api/v1/sweeps?limit=1",
        "/api/v1/nodes?limit=1",
        "/api/v1/references?limit=1",
        "/api/v1/nodes/n1/story?limit=1",
        "/api/v1/nodes/n1/history?limit=1&metric=tflops",
        "/api/v1/quarantine/history?limit=1",
    ],
)
async def test_an_invented_cursor_is_refused(compared, path):
    """With one sentence, whatever it contains; a cursor of the API gives the next page."""
    for cursor in CURSORS:
        url = URL(f"{compared.url}{path}&cursor={escaped(cursor)}", encoded=True)
        async with compared.session.get(url) as response:
            if response.status != 200:  # some happen to be valid
                assert (response.status, await response.text()) == (422, REFUSAL), cursor
    first = await compared.get(path)
    if first["next_cursor"] is not None:
        second = await compared.get(f"{path}&cursor={first['next_cursor']}")
        assert second["items"] != first["items"]
