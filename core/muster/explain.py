"""Explains a wrong value in one line: the key, what is wrong and what is valid."""

import re
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from muster.errors import quoted, unknown
from muster.secrecy import secrets_in, without_quotes_of

_IN_OUR_WORDS = {
    "dict_type": "must be a table",
    "list_type": 'must be a list, for example ["a", "b"]',
    "missing": "must be given",
    "model_type": "must be a table",
    "path_type": "must be a path",
    "string_type": "must be a text",
    "tuple_type": 'must be a list, for example ["a", "b"]',
}

_KIND = re.compile(r"^(function-\w+|list|nullable|tuple)\[")
"""What pydantic adds to the place of a value that may be of several kinds."""

_MUST = re.compile(r"^[A-Z][a-z]+ should(?= )")
"""The start of those messages of pydantic that name the valid kind of value."""

_NOT_SAID = re.compile(r" after validation|, unable to parse string as an? \w+$")
"""Of a list that is too short or too long, and of text that is no number."""


def explain(
    model: type[BaseModel], error: ValidationError, prefix: tuple[str, ...] = (), what: str = "setting"
) -> list[str]:
    """One line for each error in a table below `prefix` that `model` describes."""
    return [_line(model, item, prefix, what) for item in error.errors(include_url=False)]


def _line(model: type[BaseModel], item: ErrorDetails, prefix: tuple[str, ...], what: str) -> str:
    location = tuple(part for part in map(str, item["loc"]) if not _KIND.match(part))
    key = ".".join((*prefix, *location))
    if item["type"] == "extra_forbidden":
        table = _table_at(model, location[:-1])
        return unknown(what, key, [".".join((*prefix, *location[:-1], name)) for name in table.model_fields])
    given = item["input"]
    hidden = list(secrets_in(key, given))
    message = without_quotes_of(hidden, what_is_valid(item))
    shown = f" (got {quoted(given)})" if isinstance(given, str | int | float) and not hidden else ""
    return f"{what} {key!r}: {message}{shown}" if key else message  # no key: the error is about the whole table


def what_is_valid(item: ErrorDetails) -> str:
    """The message of an error of pydantic in our words, such as `must be a valid integer`."""
    message = _IN_OUR_WORDS.get(item["type"]) or _MUST.sub("must", item["msg"].removeprefix("Value error, "))
    return _NOT_SAID.sub("", message)


def _table_at(model: type[BaseModel], location: tuple[str, ...]) -> type[BaseModel]:
    """The model of the table at `location`, which may contain names of entries and indices."""
    for part in location:
        if part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as `Model`, `Model | None`, `list[Model]` or `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for found in map(_model_in, get_args(annotation)) if found), None)
