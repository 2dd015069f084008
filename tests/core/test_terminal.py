"""What goes to a terminal: text as it is, and nothing that a terminal would obey or show as something else."""

import ast
import io
import json
import sys
from pathlib import Path

import pytest

from muster.table import table
from muster.terminal import copy_out, for_terminal, in_one_line, say, say_json

ROOT = Path(__file__).parent.parent.parent

COMMANDS = {
    "escape": "\x1b",
    "bell": "\x07",
    "return": "\r",
    "backspace": "\b",
    "NUL": "\x00",
    "delete": "\x7f",
    "C1 escape": "\x9b",
    "next line": "\x85",
    "right to left": "\u202e",
    "isolate": "\u2066",
    "zero width": "\u200b",
    "joiner": "\u2060",
    "mark": "\u200f",
    "byte order": "\ufeff",
    "line separator": "\u2028",
    "soft hyphen": "\xad",
    "tag": "\U000e0041",
    "half a character": "\ud800",
}


@pytest.mark.parametrize("char", COMMANDS.values(), ids=COMMANDS)
def test_what_commands_a_terminal_is_replaced(char, capsys):
    """In whatever way it goes out."""
    assert for_terminal(f"a{char}b\n\tc") == "a\ufffdb\n\tc"
    assert in_one_line(f"a{char}b\n\t c") in ("a\ufffdb c", "a b c")
    assert char not in table(("A", "B"), [(f"a{char}b", "c")])
    say(f"a{char}b")
    say_json({"a": f"a{char}b"})
    said, data = capsys.readouterr().out.splitlines()
    assert said == "a\ufffdb"
    assert data.isascii()
    assert json.loads(data) == {"a": f"a{char}b"}


def test_what_people_write_stays():
    """Whatever their language."""
    text = "für ⟨x⟩ — 測試 \N{GREEK SMALL LETTER MU}s, naïve ✓"
    assert for_terminal(text) == in_one_line(text) == text


def test_what_a_node_says_looks_like_no_line_of_ours():
    """A finding with a line break forges no row and no step."""
    assert table(("NODE", "HEALTH"), [("n1\nn2  HEALTHY\r\nn3\u2028n4", "FAILED")]).count("\n") == 1
    assert in_one_line("it is bad\n2026-01-01T00:00:00.000Z  health  all is well\r\n") == (
        "it is bad 2026-01-01T00:00:00.000Z health all is well"
    )


def test_a_narrow_encoding_is_no_error():
    """A question mark stands for what it lacks."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    say("für \x1b", file=out)
    assert out.buffer.getvalue() == b"f?r ?\n"


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, "a\ufffd[2J\n"), (False, "a\x1b[2J\n")])
def test_a_document_is_made_harmless_for_people_only(monkeypatch, is_terminal, shown):
    """A program that reads it gets every byte."""
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stdout", out)
    copy_out("a\x1b[2J\n")
    assert out.getvalue() == shown


PACKAGES = ("core/muster", "agent/muster_agent", "coordinator/muster_coordinator", "plugins/muster_plugins")
ALLOWED = {"core/muster/terminal.py", "coordinator/muster_coordinator/reports/progress.py"}
"""The second moves the cursor itself; what it writes of others has gone through `in_one_line`."""


def prints(tree):
    """Whether a module writes to a terminal by itself."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        if name == "print" or name.endswith((".echo", ".secho", "stdout.write", "stderr.write", "_out.write")):
            return True
    return False


def test_nobody_else_prints():
    """So that whatever is printed, today or one day, goes through the one place that makes it harmless."""
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(modules) > 200
    found = {str(path.relative_to(ROOT)) for path in modules if prints(ast.parse(path.read_text()))}
    assert found == ALLOWED
