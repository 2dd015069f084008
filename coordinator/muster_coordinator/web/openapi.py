"""The API as an OpenAPI 3.1 document, made from the route table and from the models of requests and answers.

The document depends only on the code, so every coordinator of a version serves the same one. Where the settings matter,
it describes both cases: reading may need the token (`http.token_file`), changing needs it unless loopback is trusted.

Pydantic makes the schemas. The paths are written by hand, because generators for aiohttp bring their own routes.
"""

import json
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from muster import __version__
from muster_coordinator.web.api_schemas import JsonSchema, ModelClass, Schemas, schemas_of
from muster_coordinator.web.problems import CONTENT_TYPE, ProblemDetails
from muster_coordinator.web.requests import NoQuery
from muster_coordinator.web.route import EVENTS, JSON, Route
from muster_coordinator.web.sessions import COOKIE, Right

INTRODUCTION = (
    "Times are ISO 8601 in UTC. Lists answer with `items` and `next_cursor`, which is null on the last page and the "
    "value of `cursor` for the next page otherwise. Unknown query parameters and fields are errors. Every error is a "
    "problem (RFC 9457): its `detail` says what is wrong and what would be right. Only requests that are not valid "
    "HTTP get plain text, and clients get an empty 503 while all connections are in use. HEAD works wherever GET does, "
    "except for events."
)

TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "The token in the file that `http.token_file` names. Without this setting, the coordinator listens "
    "on loopback and writes a token to the file `api_token` in `data_dir` at each start. The token of "
    "`http.read_token_file` may only read, that of `http.report_token_file` also send acceptance reports.",
}

SESSION = {
    "type": "apiKey",
    "in": "cookie",
    "name": COOKIE,
    "description": "The session of a browser, which POST on the session opens. A request that changes something must "
    "come from a page of the same origin, as `Sec-Fetch-Site` or `Origin` say. It may change what the token of its "
    "login may.",
}

SECURITY: dict[Right, list[dict[str, list[str]]]] = {
    Right.PROBE: [],
    Right.READ: [{}, {"token": []}, {"session": []}],  # nothing is needed if `http.token_file` is not set
    Right.REPORT: [{"token": []}, {"session": []}],
    Right.CHANGE: [{"token": []}, {"session": []}],
}

PROBLEMS: dict[HTTPStatus, tuple[str, str]] = {
    HTTPStatus.BAD_REQUEST: ("BadRequest", "A query parameter, the path or the body cannot be read or is unknown"),
    HTTPStatus.UNAUTHORIZED: ("Unauthorized", "The token is missing or wrong, and http.token_file is set"),
    HTTPStatus.FORBIDDEN: (
        "Forbidden",
        "The caller may only read, the page is of another origin, or the name in Host is not loopback",
    ),
    HTTPStatus.NOT_FOUND: ("NotFound", "The path or a parameter names something that does not exist"),
    HTTPStatus.REQUEST_TIMEOUT: ("RequestTimeout", "The body did not arrive in time"),
    HTTPStatus.CONFLICT: ("Conflict", "The request does not fit the present state"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("BodyTooLarge", "The body is larger than 1 MiB; 16 KiB without a token"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ("UnsupportedMediaType", "The body is not application/json"),
    HTTPStatus.UNPROCESSABLE_ENTITY: ("Refused", "The request can be read, and a value in it is not valid"),
    HTTPStatus.TOO_MANY_REQUESTS: ("TooManyRequests", "Too many wrong tokens; Retry-After says how long to wait"),
    HTTPStatus.INTERNAL_SERVER_ERROR: ("InternalError", "The coordinator made a mistake; its log has the details"),
    HTTPStatus.SERVICE_UNAVAILABLE: ("Unavailable", "The database or the broker does not work at present"),
}
"""The name and meaning of each error in the document, by status. Python's own phrases differ by version."""

PATH_PARAMETERS = {
    "node": "The name of a node",
    "run": "The id of a run",
    "sweep": "The id of a sweep",
    "baseline": "The id of a baseline",
    "report": "The id of an acceptance",
}


def openapi_document(routes: Sequence[Route[Any]]) -> str:
    """The document as JSON, the same text for the same code."""
    schemas = _schemas(routes)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "muster coordinator",
            "version": __version__,
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": _paths(routes, schemas),
        "components": {
            "schemas": schemas.components,
            "responses": _problems(routes, schemas),
            "securitySchemes": {"token": TOKEN, "session": SESSION},
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _schemas(routes: Sequence[Route[Any]]) -> Schemas:
    answered = {model for route in routes for model in route.media.values() if model is not None}
    taken = {route.body for route in routes if route.body is not None}
    return schemas_of({*answered, ProblemDetails}, taken, {route.query or NoQuery for route in routes})


def _paths(routes: Sequence[Route[Any]], schemas: Schemas) -> dict[str, JsonSchema]:
    """The operations of each path, in the order of the table."""
    paths: dict[str, JsonSchema] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return paths


def _operation(route: Route[Any], schemas: Schemas) -> JsonSchema:
    operation: JsonSchema = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [
            *_path_parameters(route),
            *_query_parameters(schemas.queries[route.query or NoQuery]),
            *_header_parameters(route),
        ],
        "responses": _responses(route, schemas),
        "security": SECURITY[route.right],
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas.bodies[route.body]}}}
    return operation


def _path_parameters(route: Route[Any]) -> Iterator[JsonSchema]:
    for name in route.path_parameters:
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "description": PATH_PARAMETERS[name], "schema": schema}


def _query_parameters(query: JsonSchema) -> Iterator[JsonSchema]:
    """The fields of a query as parameters. Omitting a parameter corresponds to null in its field."""
    for name, field in query.get("properties", {}).items():
        (schema,) = (choice for choice in field.get("anyOf", [field]) if choice != {"type": "null"})
        yield {
            "name": name,
            "in": "query",
            "required": name in query.get("required", ()),
            "description": field.get("description", ""),
            **_written(schema),
        }


def _written(schema: JsonSchema) -> JsonSchema:
    """The schema of a value in a query: a text that holds JSON is described by its content."""
    if "contentSchema" in schema:
        return {"content": {schema["contentMediaType"]: {"schema": schema["contentSchema"]}}}
    return {"schema": {key: value for key, value in schema.items() if key != "description"}}


def _header_parameters(route: Route[Any]) -> Iterator[JsonSchema]:
    for name, text in route.reads.items():
        yield {"name": name, "in": "header", "required": False, "description": text, "schema": {"type": "string"}}


def _responses(route: Route[Any], schemas: Schemas) -> JsonSchema:
    content = {kind: _media(kind, model, schemas) for kind, model in route.media.items()}
    success: JsonSchema = {"description": route.status.phrase, "content": content}
    if route.sends:
        success["headers"] = {name: _header(text) for name, text in route.sends.items()}
    errors = {str(status.value): {"$ref": f"#/components/responses/{PROBLEMS[status][0]}"} for status in route.problems}
    unchanged = {"304": {"description": "The client has the present answer"}} if route.may_be_unchanged else {}
    return {str(route.status.value): success, **unchanged, **errors}


def _media(kind: str, model: ModelClass | None, schemas: Schemas) -> JsonSchema:
    """The content of an answer with this content type. OpenAPI 3.1 cannot describe the events of a stream."""
    if kind == EVENTS:
        return {}
    return {"schema": schemas.answers[model] if model else {"type": "object" if kind == JSON else "string"}}


def _problems(routes: Sequence[Route[Any]], schemas: Schemas) -> JsonSchema:
    """The errors of all routes, by name."""
    statuses = sorted({status for route in routes for status in route.problems})
    return {PROBLEMS[status][0]: _problem(status, schemas) for status in statuses}


def _problem(status: HTTPStatus, schemas: Schemas) -> JsonSchema:
    content = {CONTENT_TYPE: {"schema": schemas.answers[ProblemDetails]}}
    problem: JsonSchema = {"description": PROBLEMS[status][1], "content": content}
    if status is HTTPStatus.UNAUTHORIZED:
        problem["headers"] = {"WWW-Authenticate": _header("A challenge of the scheme `Bearer`")}
    return problem


def _header(text: str) -> JsonSchema:
    return {"description": text, "required": True, "schema": {"type": "string"}}
