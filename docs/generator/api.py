"""The page of all routes of the HTTP API, from the table that the server and the OpenAPI document are made from."""

import inspect
import json
from collections.abc import Iterator
from typing import Any

from generator.markdown import NOTE, page, table
from pydantic import BaseModel

from muster_coordinator.web.api_schemas import INPUT
from muster_coordinator.web.requests import NoQuery
from muster_coordinator.web.route import Route
from muster_coordinator.web.route_table import ROUTES, openapi_text

_DOCUMENT = json.loads(openapi_text())
_COMPONENTS = _DOCUMENT["components"]["schemas"]
_ANY, _PAGE = "JsonValue", "Page"
"""The name of a component for any value, and how the names of pages end. Neither has more to say."""


def api() -> str:
    """Every route, what it takes and what it answers with."""
    lines = [
        NOTE,
        "# HTTP API",
        "JSON throughout; times are ISO 8601 in UTC. Lists answer with `items` and `next_cursor`, which is null on the "
        "last page and the value of `cursor` for the next one otherwise. Errors are problem details (RFC 9457) whose "
        "`detail` says what would be right; only a request that is no HTTP at all gets plain text. A sweep is "
        "`planned` until the nodes of its first group are free. Where `http.token_file` is set, send "
        "`Authorization: Bearer TOKEN`. Without that setting the API listens on loopback, and GET and HEAD need no "
        "token. All other methods need the token in `api_token` in `data_dir`, unless `http.trust_loopback` is set. "
        "The token of `http.read_token_file` may only read, that of `http.report_token_file` also send acceptance "
        "reports. Browsers log in at `/api/v1/session` "
        "([roles](../how-to/roles.md)).",
        "`/api/v1/openapi.json` serves this page as an OpenAPI 3.1 document. Generators of clients read it.",
        table(_routes(), ("Method", "Path", "Takes", "Answers with", "Meaning")),
        "## Queries and bodies",
        "Unknown names are refused with 400 in a query and with 422 in a body.",
    ]
    for model in dict.fromkeys(model for route in ROUTES for model in _taken(route)):
        lines += _section(model.__name__, model.model_json_schema(mode="validation"))
    lines += ["## Answers"]
    for name in sorted(_COMPONENTS.keys() - _names_taken()):
        if name != _ANY and not name.endswith((_PAGE, INPUT)):
            lines += _section(name, _COMPONENTS[name])
    return page(lines)


def _names_taken() -> set[str]:
    return {model.__name__ for route in ROUTES for model in _taken(route)}


def _taken(route: Route[Any]) -> list[type[BaseModel]]:
    return [model for model in (route.query, route.body) if model not in (None, NoQuery)]


def _routes() -> Iterator[tuple[str, ...]]:
    for route in ROUTES:
        takes = ", ".join(_link(model.__name__) for model in _taken(route))
        yield route.method, f"`{route.path}`", takes, _answer(route), route.summary


def _answer(route: Route[Any]) -> str:
    """The model that a route answers with, or else the content types."""
    responses = _DOCUMENT["paths"][route.path][route.method.lower()]["responses"]
    kinds = responses[str(route.status.value)]["content"].items()
    return ", ".join(
        _type(media["schema"]) if "$ref" in media.get("schema", {}) else f"`{kind}`" for kind, media in kinds
    )


def _section(name: str, schema: dict[str, Any]) -> list[str]:
    """What a query, a body, an answer or a part of one is made of."""
    lines = [f"### {name}", inspect.cleandoc(schema.get("description", ""))]
    if "enum" in schema:
        lines.append("One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".")
    elif schema.get("properties"):
        fields = [(f"`{field}`", _type(it), it.get("description", "")) for field, it in _fields(schema)]
        columns = ("Field", "Type", "Meaning") if any(meaning for _, _, meaning in fields) else ("Field", "Type")
        lines.append(table((row[: len(columns)] for row in fields), columns))
        lines += _deprecated(schema)
    return [line for line in lines if line]


def _fields(schema: dict[str, Any], *, deprecated: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, it) for name, it in schema["properties"].items() if it.get("deprecated", False) is deprecated)


def _deprecated(schema: dict[str, Any]) -> list[str]:
    """The deprecated fields, in a table of their own."""
    rows = [(f"`{field}`", it["description"]) for field, it in _fields(schema, deprecated=True)]
    return ["Deprecated fields:", table(iter(rows), ("Field", "Instead"))] if rows else []


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _type(schema: dict[str, Any]) -> str:
    """The type of a field as JSON knows it."""
    if "$ref" in schema:
        return _type_of(schema["$ref"].rpartition("/")[2])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(map(_type, choices))
    if schema.get("type") == "array":
        return _list_type(schema)
    if values := _schemas_of_values(schema):
        return f"object of {' or '.join(map(_type, values))}"
    return "time" if schema.get("format") == "date-time" else str(schema.get("type", "any value"))


def _type_of(component: str) -> str:
    if component == _ANY:
        return "any value"
    if component.endswith(_PAGE):
        return f"page of {_type(_COMPONENTS[component]['properties']['items']['items'])}"
    return _link(component)


def _list_type(schema: dict[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])} {_type(schema['prefixItems'][0])}s"
    return f"list of {_type(schema['items'])}"


def _schemas_of_values(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What the values of an object with any keys may be; keys that have a pattern stand apart from all others."""
    others = schema.get("additionalProperties")
    return [*schema.get("patternProperties", {}).values(), *([others] if isinstance(others, dict) else [])]
