"""What the documents show can be typed: commands exist with these options, files and make targets are there."""

import re
import shlex
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from muster import cli
from muster.config import Config, Settings

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SETTING = re.compile(r"`((?:broker|http|leader|quarantine|store|sweeps)\.(?!py`)[a-z_.]*[a-z_])`")
NO_SETTING = {"quarantine.alarms"}
"""A field of an answer of the API."""
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#]+)(?:#[^)]*)?\)")


def blocks(language: str) -> list[tuple[str, str]]:
    """(document, text) of every block of a language."""
    return [
        (str(path.relative_to(ROOT)), text)
        for path in DOCUMENTS
        for kind, text in BLOCK.findall(path.read_text(encoding="utf-8"))
        if kind == language
    ]


def commands(program: str) -> list[str]:
    """Every line of a ```console block that calls `program` behind a `$ ` prompt, with its place."""
    lines = [line.removeprefix("$ ") for _, text in blocks("console") for line in text.splitlines() if line[:2] == "$ "]
    return sorted({line for line in lines if program in line.split()[:1]})


@cache
def root_command() -> Any:
    return get_command(cli.app)


@pytest.mark.parametrize("line", commands("muster"))
def test_muster_command_parses(line):
    """Every `muster` command that a document shows is one that the command line accepts."""
    _, *arguments = shlex.split(line, comments=True)
    command, context = root_command(), typer.Context(root_command(), info_name="muster")
    while hasattr(command, "get_command"):
        if arguments[:1] in (["--help"], ["--version"]):
            return
        command = command.get_command(context, arguments[0])
        assert command is not None, f"no command {arguments[0]!r}"
        context, arguments = typer.Context(command, parent=context), arguments[1:]
    command.make_context(line, arguments, resilient_parsing=False)


@pytest.mark.parametrize("line", commands("make"))
def test_make_target_exists(line):
    """Every `make` command that a document shows has its target."""
    done = subprocess.run(
        ["make", "--dry-run", *shlex.split(line, comments=True)[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("document", "text"), blocks("toml"))
def test_toml_is_valid(document, text):
    """TOML in the documents parses; settings in it exist. References and rows of a policy have tests of their own."""
    table = tomllib.loads(text)
    if not table.keys() & {"project", "reference", "row"}:
        Config(Settings.model_validate(table))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_settings_in_a_text_exist(path):
    """Every setting that a sentence names is in the reference."""
    known = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    named = {*SETTING.findall(path.read_text(encoding="utf-8"))} - NO_SETTING
    assert [name for name in sorted(named) if f"`{name}`" not in known and f"`{name}." not in known] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    """Every relative link names a file that is there."""
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("name", ["pyproject.toml", "muster_disk.py"])
def test_the_worked_example_is_the_package_that_the_tests_install(name):
    """CONTRIBUTING shows exactly the files that tests/plugin_package/ installs and runs."""
    example = (ROOT / "tests" / "plugin_package" / name).read_text(encoding="utf-8")
    assert example in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
