"""The fields of models as people read them: for the reference of settings, and for an example of a settings file."""

import json
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python


class ModelField(NamedTuple):
    """A field with its type in words. `default` is None if the description says what an unset value means."""

    key: str
    type_text: str
    default: Any
    is_required: bool
    description: str


def model_fields(model: type[BaseModel], prefix: str) -> Iterator[ModelField]:
    """Each field of a model and of those in it, by its path of names; paths begin with `prefix`.

    A table that may be missing has a row of its own as well, which says what that means.
    """
    for name, field in model.model_fields.items():
        key = prefix + name
        nested = _model_in(field.annotation)
        if nested is None or field.default is None:
            is_required = field.default is PydanticUndefined and field.default_factory is None
            yield ModelField(key, _type(field.annotation), _default(field), is_required, field.description or "")
        if nested is not None:
            step = ".<name>." if get_origin(field.annotation) is dict else "."
            yield from model_fields(nested, key + step)


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


def _default(field: FieldInfo) -> Any:
    if field.default_factory is not None or field.default is PydanticUndefined:
        return None
    return to_jsonable_python(field.default)
