"""The settings file in which everything is a comment."""

import re
import tomllib
from functools import reduce

import pytest

from muster import plugins
from muster.config import Config, Settings
from muster.settings_example import every_setting, settings_example

TABLE, VALUE = re.compile(r"^#\[(.+)\]$"), re.compile(r"^#(\w+ = (?!# ).+)$")


@pytest.fixture(scope="module")
def config() -> Config:
    """The defaults, with the tables of all plugins."""
    loaded = Config(Settings())
    plugins.load(loaded)
    return loaded


@pytest.fixture(scope="module")
def example(config) -> str:
    return settings_example(config.claimed)


def chosen(example: str) -> dict:
    """The tables that an operator gets who takes the # away before every value, except where a name is to be chosen."""
    lines, is_named = [], False
    for line in example.splitlines():
        if table := TABLE.match(line):
            is_named = "<name>" in table[1]
        taken = table or VALUE.match(line)
        if taken and not is_named:
            lines.append(f"[{taken[1]}]" if table else taken[1])
    return tomllib.loads("\n".join(lines))


def at(path: str, table: dict):
    return reduce(lambda level, name: level[name], path.split("."), table)


def test_as_it_is_it_sets_nothing(example):
    """So it can be a settings file from the beginning."""
    assert tomllib.loads(example) == {}


def test_it_has_every_setting(example, config):
    """Below its table, with its value if it has one."""
    fields = [*every_setting(config.claimed)]
    assert len(fields) > 200
    tables = {field.key.rpartition(".")[0] for field in fields}
    assert set(re.findall(TABLE.pattern, example, re.MULTILINE)) == tables - {""}
    names = [field.key.rpartition(".")[2] for field in fields if field.key not in tables]
    assert sorted(re.findall(r"^#(\w+) = ", example, re.MULTILINE)) == sorted(names)


def test_its_values_are_the_defaults(example, config):
    """An operator who takes a # away changes nothing before they change the value."""
    table = chosen(example)
    for field in every_setting(config.claimed):
        if field.default is not None and "<name>" not in field.key:
            assert at(field.key, table) == field.default, field.key


def test_the_command_prints_it(muster, example):
    """With the plugins of this host."""
    done = muster("config", "example")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == example
