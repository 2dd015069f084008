"""The manual pages: complete, and without anything that groff warns of."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from generator.man import muster_1, muster_toml_5
from tests.core.test_cli import every_command
from typer.main import get_command

from muster import cli

MAN = Path(__file__).parents[2] / "docs" / "man"


def shown(page: str) -> str:
    """The page as a terminal shows it, in one line. Fails on any warning."""
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=200n"],
        input=page,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("path", sorted(MAN.iterdir()), ids=lambda path: path.name)
def test_groff_has_nothing_to_warn_of(path):
    """Every line is text, or a request that there is."""
    text = path.read_text(encoding="utf-8")
    assert "NAME" in shown(text)
    with pytest.raises(AssertionError):
        shown(text + ".NOREQUEST\n")


def test_every_command_and_option_is_there():
    """With its arguments, below the command that it belongs to."""
    page = muster_1()
    sections = dict(re.findall(r'^\.SS "(muster(?: [a-z]+)+).*?$(.*?)(?=^\.S)', page, re.MULTILINE | re.DOTALL))
    for words in every_command():
        command: Any = get_command(cli.app)
        for word in words:
            command = command.get_command(None, word)
        if hasattr(command, "list_commands"):
            continue
        for option in command.params:
            name = option.metavar if option.param_type_name == "argument" else option.opts[0]
            assert name.replace("-", "\\-") in sections[" ".join(["muster", *words])], (words, name)


def test_what_troff_would_obey_is_text():
    """Backslashes, quotes and hyphens of help texts and defaults come out as they are."""
    text = shown(muster_toml_5())
    assert '/usr/local/gib/lib64/libnccl-net*.so"' in text
    assert "--config" in shown(muster_1())
