"""A settings file in which every setting is a comment with its default."""

from collections.abc import Iterator, Mapping
from textwrap import wrap

from pydantic import BaseModel

from muster.config import Settings
from muster.model_fields import ModelField, model_fields
from muster.toml import value_text

HEAD = """\
# Every setting of muster with its default. To change one, take away the # before it and before the [table] above it.
# A setting without a value is unset; the word behind it is its type. <name> stands for a name that you choose.
# `muster config check` says what is wrong, `muster config show` what is in effect. The environment overrides this file:
# MUSTER_HTTP__LISTEN is `listen` in [http].
"""

_WIDTH = 118


def every_setting(plugins: Mapping[str, BaseModel]) -> Iterator[ModelField]:
    """The settings of muster, and those of plugins by their names."""
    yield from model_fields(Settings, "")
    for name, section in sorted(plugins.items()):
        yield from model_fields(type(section), f"plugins.{name}.")


def settings_example(plugins: Mapping[str, BaseModel]) -> str:
    """The file with the settings of muster, and those of plugins by their names."""
    tables: dict[str, list[ModelField]] = {"": []}
    for field in every_setting(plugins):
        tables.setdefault(field.key.rpartition(".")[0], []).append(field)
    return "\n".join([HEAD, *_lines(tables)])


def _lines(tables: Mapping[str, list[ModelField]]) -> Iterator[str]:
    """The tables. What the field of a table that may be missing says stands above that table."""
    above = {field.key: field for fields in tables.values() for field in fields if field.key in tables}
    for table, fields in tables.items():
        if table in above:
            yield from _prose(above[table])
        if table:
            yield f"#[{table}]\n"
        for field in fields:
            if field.key not in above:
                yield from _prose(field)
                yield f"#{_setting(field)}\n"


def _prose(field: ModelField) -> Iterator[str]:
    return (f"# {line}" for line in wrap(field.description, _WIDTH))


def _setting(field: ModelField) -> str:
    name = field.key.rpartition(".")[2]
    if field.default is None:
        return f"{name} = # {field.type_text}{', required' if field.is_required else ''}"
    choices = f" # {field.type_text}" if '" or "' in field.type_text else ""
    return f"{name} = {value_text(field.default)}{choices}"
