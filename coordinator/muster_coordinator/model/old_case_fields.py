"""The fields of a case under their old names, which the API serves beside the new names until 0.3.

To end that, delete this file and its test, and derive CaseView from Data.
"""

from typing import Any

from pydantic import GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from muster.model import Data

OLD_NAMES = {
    "place": "domain",
    "listed": "was_listed",
    "gone": "left",
    "charges": "findings",
    "sightings": "seen",
    "demand": "requirement",
    "prospect": "upcoming",
    "accused_at": "required_since",
    "absolved_at": "ignored_before",
    "fit": "is_fit",
    "patience_s": "silent_after_s",
    "views": "observed",
    "asked": "second_opinions",
    "let_pass": "lifted",
    "taken_out": "cordoned_at",
    "accusers": "retest_checks",
    "may_return": "retest_because",
    "trial": "probation",
    "kept_out": "kept_out_as_new",
    "closed_as": "shut_out_as",
    "announced": "shows_held",
    "back_at": "retest_at",
}
"""The field to use instead of each deprecated one."""


class WithOldNames(Data):
    """Data that is written with the deprecated names too; it is read by its own names only."""

    @model_serializer(mode="wrap")
    def _serialize(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        return fields | {old: fields[new] for old, new in OLD_NAMES.items() if new in fields}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema of the fields, not of what the serializer returns, and the deprecated names in what is written."""
        fields_only: Any = {key: value for key, value in core_schema.items() if key != "serialization"}
        schema = handler(fields_only)
        if handler.mode == "serialization":
            _add_old_names(handler.resolve_ref_schema(schema))
        return schema


def _add_old_names(schema: JsonSchemaValue) -> None:
    """Adds the deprecated fields to the schema of an object that has the new ones."""
    properties, required = schema["properties"], schema.get("required", [])
    for old, new in OLD_NAMES.items():
        about = {"description": f"Use `{new}`. Removed in 0.3.", "deprecated": True}
        properties[old] = {**properties[new], **about}
    required += [old for old, new in OLD_NAMES.items() if new in required]
