"""The OpenAPI document is valid, and says of each route what the server does."""

import json
import re

import openapi_spec_validator
import pytest

from muster_coordinator.web.guard import Access
from muster_coordinator.web.openapi import openapi_document
from muster_coordinator.web.route_table import ROUTES, openapi_text
from muster_coordinator.web.server import application
from muster_coordinator.web.sessions import Right

PLACE = "/api/v1/openapi.json"
DOCUMENT = json.loads(openapi_text())
DECISION = {"by": "me", "reason": "mine"}
REAL = {"node": "n1", "run": "r", "sweep": "s", "baseline": "b", "report": "a"}


def operations():
    """Method, path and description of every operation of the document."""
    paths = DOCUMENT["paths"].items()
    return [(method.upper(), path, it) for path, methods in paths for method, it in methods.items()]


def valid_names(sentence):
    """The names that a refusal of an unknown one lists."""
    (names,) = re.findall(r"\(valid: (.*)\)", sentence)
    return [] if names == "none" else names.split(", ")


def test_the_document_is_valid():
    """By the rules of OpenAPI 3.1."""
    assert DOCUMENT["openapi"] == "3.1.0"
    openapi_spec_validator.validate(DOCUMENT)


def test_the_order_of_the_routes_changes_no_schema():
    """So the document does not depend on the order of a set either."""
    other = json.loads(openapi_document(ROUTES[::-1]))
    assert json.dumps(other["components"]) == json.dumps(DOCUMENT["components"])


def test_every_operation_has_a_name_of_its_own():
    """Generated clients call their functions so."""
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(names) == len(set(names))


def test_everything_is_explained():
    """Every operation and every parameter."""
    for method, path, operation in operations():
        assert operation["summary"], (method, path)
        assert [it["name"] for it in operation["parameters"] if not it["description"]] == [], (method, path)


PAGES = {
    *(
        ("GET", path)
        for path in ("/", "/help", "/nodes", "/nodes/{node}", "/sweeps", "/sweeps/{sweep}", "/quarantine", "/events")
    ),
    *(("POST", f"/nodes/{{node}}/{form}") for form in ("hold", "release", "runs")),
    *(("POST", path) for path in ("/sweeps", "/sweeps/plan", "/sweeps/{sweep}/abort", "/quarantine/unfreeze")),
    *(("GET", path) for path in ("/acceptance", "/acceptance/{report}")),
    *(("GET", "/login"), ("POST", "/login"), ("POST", "/logout")),
}
"""Pages for people and their forms, beside the files that they load."""


async def test_the_document_has_every_route(api):
    """Of the API, and no other; HEAD is said to be wherever GET is."""
    routes = application(api.shell.routes(api.store), Access("any", Right.CHANGE, "")).router.routes()
    served = {(it.method, it.resource.canonical) for it in routes if it.resource and it.method != "HEAD"}
    pages = PAGES | {(method, path) for method, path in served if path.startswith("/static/")}
    assert {(method, path) for method, path, _ in operations()} == served - pages
    assert pages <= served


async def test_the_document_is_served(api):
    """As JSON, whatever reads it."""
    response, document = await api.ask("GET", PLACE)
    assert (response.status, response.content_type) == (200, "application/json")
    assert document == DOCUMENT


@pytest.mark.parametrize("access", [Access("a-secret", Right.PROBE, "of http.token_file")])
async def test_the_document_needs_the_token_that_reading_needs(api):
    """It is no exception."""
    assert "http.token_file" in await api.refused(401, "GET", PLACE)


async def test_parameters_are_those_that_the_route_takes(fleet):
    """Every route but probes and metrics refuses an unknown one, and lists those that it takes."""
    for method, path, operation in operations():
        described = sorted(it["name"] for it in operation["parameters"] if it["in"] == "query")
        body = {"json": DECISION} if "requestBody" in operation else {}
        response, answer = await fleet.ask(method, path.format(**REAL) + "?nothing=1", **body)
        if path in ("/healthz", "/readyz", "/metrics"):
            assert (response.status in (200, 503), described) == (True, []), path
        else:
            assert (response.status, valid_names(answer["detail"])) == (400, described), (method, path)


async def test_fields_are_those_that_the_route_takes(fleet):
    """Every body refuses an unknown field, and lists those that it takes and those that it needs."""
    with_body = [(method, path, it["requestBody"]) for method, path, it in operations() if "requestBody" in it]
    assert len(with_body) >= 8
    for method, path, body in with_body:
        reference = body["content"]["application/json"]["schema"]["$ref"]
        described = DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]]
        detail = await fleet.refused(422, method, path.format(**REAL), json={"nothing": 1})
        assert valid_names(detail) == sorted(described["properties"]), (method, path)
        assert re.findall(r"field '(\w+)': must be given", detail) == described["required"], (method, path)


def test_changing_needs_the_token():
    """Or a session. Reading may need one of them, and so does the plan of a sweep; probes and the login need none."""
    proofs: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]
    needs: dict[str, list[dict[str, list[str]]]] = {"free": [], "read": [{}, *proofs], "change": proofs}
    free = {("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/api/v1/session"), ("DELETE", "/api/v1/session")}
    for method, path, operation in operations():
        is_read = method == "GET" or path == "/api/v1/sweeps/plan"
        kind = "free" if (method, path) in free else "read" if is_read else "change"
        assert operation["security"] == needs[kind], (method, path)


def test_every_answer_has_a_schema():
    """Errors are problems everywhere. Of events, OpenAPI 3.1 can describe the content type only."""
    for method, path, operation in operations():
        (success,) = (it for status, it in operation["responses"].items() if status < "300")
        described = {"schema"} if not path.endswith(("/events", "/changes")) else set()
        assert all(set(media) == described for media in success["content"].values()), (method, path)
        assert {"400", "403", "500", "503"} < set(operation["responses"])
    for problem in DOCUMENT["components"]["responses"].values():
        assert problem["content"] == {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
        }
