"""Output to a terminal: text stays as it is, and characters that control the terminal are replaced."""

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
def test_control_characters_are_replaced(char, capsys):
    """By every function that prints."""
    assert for_terminal(f"a{char}b\n\tc") == "a\ufffdb\n\tc"
    assert in_one_line(f"a{char}b\n\t c") in ("a\ufffdb c", "a b c")
    assert char not in table(("A", "B"), [(f"a{char}b", "c")])
    say(f"a{char}b")
    say_json({"a": f"a{char}b"})
    said, data = capsys.readouterr().out.splitlines()
    assert said == "a\ufffdb"
    assert data.isascii()
    assert json.loads(data) == {"a": f"a{char}b"}


def test_printable_text_is_not_changed():
    """In any language."""
    text = "für ⟨x⟩ — 測試 \N{GREEK SMALL LETTER MU}s, naïve ✓"
    assert for_terminal(text) == in_one_line(text) == text


def test_text_from_a_node_forges_no_line():
    """A line break in a finding makes no row of a table and no step of a story."""
    assert table(("NODE", "HEALTH"), [("n1\nn2  HEALTHY\r\nn3\u2028n4", "FAILED")]).count("\n") == 1
    assert in_one_line("it is bad\n2026-01-01T00:00:00.000Z  health  all is well\r\n") == (
        "it is bad 2026-01-01T00:00:00.000Z health all is well"
    )


def test_a_narrow_encoding_is_no_error():
    """A question mark replaces characters that it lacks."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    say("für \x1b", file=out)
    assert out.buffer.getvalue() == b"f?r ?\n"


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, "a\ufffd[2J\n"), (False, "a\x1b[2J\n")])
def test_a_document_is_changed_for_terminals_only(monkeypatch, is_terminal, shown):
    """A program that reads it gets every byte."""
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stdout", out)
    copy_out("a\x1b[2J\n")
    assert out.getvalue() == shown


class Terminal(io.StringIO):
    """What takes itself for a terminal."""

    def isatty(self):
        return True


STATES = "FAIL WARN PASS HEALTHY FAILED LOST CORDONED PASSED"
PAINTED = (
    "\x1b[31mFAIL\x1b[0m \x1b[33mWARN\x1b[0m \x1b[32mPASS\x1b[0m \x1b[32mHEALTHY\x1b[0m \x1b[31mFAILED\x1b[0m "
    "\x1b[31mLOST\x1b[0m \x1b[31mCORDONED\x1b[0m PASSED"
)


@pytest.mark.parametrize(
    ("environment", "shown"),
    [({}, PAINTED), ({"NO_COLOR": ""}, PAINTED), ({"NO_COLOR": "1"}, STATES), ({"TERM": "dumb"}, STATES)],
)
def test_a_terminal_shows_states_in_colour(monkeypatch, environment, shown):
    """Unless NO_COLOR is set to anything (https://no-color.org), or the terminal has none."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = Terminal()
    say(STATES, file=out)
    assert out.getvalue() == f"{shown}\n"


def test_a_pipe_gets_no_colours(monkeypatch):
    """What reads it compares text."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = io.StringIO()
    say(STATES, file=out)
    assert out.getvalue() == f"{STATES}\n"


def test_no_text_brings_colours_of_its_own(monkeypatch):
    """Nor does what a lost node was look well."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    say("\x1b[32mall is well, LOST (was HEALTHY)", file=out)
    assert out.getvalue() == "\ufffd[32mall is well, \x1b[31mLOST\x1b[0m (was HEALTHY)\n"


PACKAGES = ("core/muster", "agent/muster_agent", "coordinator/muster_coordinator", "plugins/muster_plugins")
ALLOWED = {"core/muster/terminal.py", "coordinator/muster_coordinator/views/sweeps/progress.py"}
"""The second moves the cursor itself; it passes text from outside through `in_one_line`."""


def writes_to_terminal(tree):
    """Whether a module writes to a terminal itself."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        if name == "print" or name.endswith((".echo", ".secho", "stdout.write", "stderr.write", "_out.write")):
            return True
    return False


def test_all_output_goes_through_one_module():
    """The module that replaces control characters; this holds for new code, too."""
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(modules) > 200
    found = {str(path.relative_to(ROOT)) for path in modules if writes_to_terminal(ast.parse(path.read_text()))}
    assert found == ALLOWED
