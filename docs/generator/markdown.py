"""Pages and tables in Markdown."""

import json
from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from muster.model_fields import ModelField, model_fields

NOTE = "<!-- Generated from the code by `make docs`; edit the code instead. -->"


def page(blocks: list[str]) -> str:
    """A page of these blocks: headings, paragraphs and tables."""
    return "\n\n".join(blocks) + "\n"


def table(rows: Iterable[tuple[str, ...]], header: tuple[str, ...]) -> str:
    """A table below its header."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def fields(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, ...]]:
    """Name, type, default and meaning of each field of a model and of those in it; names begin with `prefix`."""
    for field in model_fields(model, prefix):
        yield f"`{field.key}`", f"`{field.type_text}`", _default(field), field.description


def _default(field: ModelField) -> str:
    if field.is_required:
        return "required"
    return "" if field.default is None else f"`{json.dumps(field.default)}`"
