"""Pages and tables in Markdown."""

import json
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

NOTE = "<!-- Generated from the code by `make docs`; edit the code instead. -->"


def page(blocks: list[str]) -> str:
    """A page of these blocks: headings, paragraphs and tables."""
    return "\n\n".join(blocks) + "\n"


def table(rows: Iterator[tuple[str, ...]], header: tuple[str, ...]) -> str:
    """A table below its header."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def fields(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, ...]]:
    """Name, type, default and meaning of each field of a model and of those in it; names begin with `prefix`.

    A table that may be missing has a row of its own as well, which says what that means.
    """
    for name, field in model.model_fields.items():
        key = prefix + name
        nested = _model_in(field.annotation)
        if nested is None or field.default is None:
            yield f"`{key}`", f"`{_type(field.annotation)}`", _default(field), field.description or ""
        if nested is not None:
            step = ".<name>." if get_origin(field.annotation) is dict else "."
            yield from fields(nested, key + step)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of a table, of one that may be missing, or of every table in a table."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    candidates = arguments[1:] if origin is dict else arguments if origin is UnionType else (annotation,)
    models = (it for it in candidates if isinstance(it, type) and issubclass(it, BaseModel))
    return next(models, None)


def _type(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_type(part) for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return " or ".join(map(json.dumps, get_args(annotation)))
    return str((get_origin(annotation) or annotation).__name__)


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None or field.default is None:
        return ""  # the description says what an unset value means
    if field.default is PydanticUndefined:
        return "required"
    return f"`{json.dumps(to_jsonable_python(field.default))}`"
