"""The JSON schemas of requests and answers, which pydantic makes from their models."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema

PLACE = "#/components/schemas/"

INPUT = "Input"
"""How the name of a schema ends that has another one for answers."""

JsonSchema = dict[str, Any]
ModelClass = type[BaseModel]
Wanted = tuple[ModelClass, JsonSchemaMode]


class _Generator(GenerateJsonSchema):
    """Marks every field of an answer as required. Leaves out titles that only repeat the name of a field."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return self.mode == "serialization" or super().field_is_required(field, total)

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"]) if self.mode == "serialization" else super().default_schema(schema)

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Schemas:
    """Schemas by name, to be put at PLACE, and the schemas of answers, bodies and queries that refer to them."""

    components: Mapping[str, JsonSchema]
    answers: Mapping[ModelClass, JsonSchema]
    bodies: Mapping[ModelClass, JsonSchema]
    queries: Mapping[ModelClass, JsonSchema]


def schemas_of(answers: Iterable[ModelClass], bodies: Iterable[ModelClass], queries: Iterable[ModelClass]) -> Schemas:
    """The schemas of these models, in the same order for the same models."""
    answered, taken, asked = (sorted(set(models), key=_full_name) for models in (answers, bodies, queries))
    refs, components = _made([*_each(answered, "serialization"), *_each(taken, "validation")])
    query_refs, query_parts = _made(_each(asked, "validation"))
    # A query is not a component: its fields are the parameters of a route. Types that they refer to are components.
    queried = {model: query_parts.pop(query_refs[model, "validation"]["$ref"].removeprefix(PLACE)) for model in asked}
    return Schemas(
        components=dict(sorted({**query_parts, **components}.items())),
        answers={model: refs[model, "serialization"] for model in answered},
        bodies={model: refs[model, "validation"] for model in taken},
        queries=queried,
    )


def _full_name(model: ModelClass) -> str:
    return f"{model.__module__}.{model.__qualname__}"


def _each(models: Iterable[ModelClass], mode: JsonSchemaMode) -> list[Wanted]:
    return [(model, mode) for model in models]


def _made(wanted: list[Wanted]) -> tuple[dict[Any, JsonSchema], dict[str, JsonSchema]]:
    """A reference for each model, and the components that these refer to."""
    refs, made = models_json_schema(wanted, ref_template=PLACE + "{model}", schema_generator=_Generator)
    components = {_name(name): _renamed(schema) for name, schema in made.get("$defs", {}).items()}
    return {key: _renamed(ref) for key, ref in refs.items()}, components


def _renamed(schema: JsonSchema) -> JsonSchema:
    """The schema with readable names in its references."""
    text = re.sub(rf'"{PLACE}([^"]+)"', lambda ref: f'"{PLACE}{_name(ref[1])}"', json.dumps(schema))
    renamed: JsonSchema = json.loads(text)
    return renamed


def _name(name: str) -> str:
    """The name of a component for people: `RunPage` for pydantic's `Page_Run_`, `AOrBPage` for `Page_Union_A__B__`.

    What is both sent and answered has two schemas, since an answer has every field: `RunInput` and `Run`.
    """
    name = name.removesuffix("-Output").replace("-Input", INPUT)
    page = re.fullmatch(r"Page_(?:Union_)?(.+?)_+", name)
    return name if page is None else page[1].replace("__", "Or") + "Page"
