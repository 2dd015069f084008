"""Prints text for people. Every command prints through this module; a test checks that.

Much of the text comes from nodes and plugins: names of devices, findings, errors, output of programs. A terminal obeys
control characters. Therefore this module replaces them, and also characters that are invisible or change the order of
others. JSON for programs is printed as it is, in ASCII.

On a terminal, states and verdicts have colours: words in capitals such as FAILED, anywhere in a line. The colours are
added after the control characters have been replaced, so no text of a node can bring its own.
"""

import json
import os
import re
import shutil
import signal
import sys
from typing import Any, TextIO

from muster.errors import OutputFailed

NOBODY_READS = 128 + signal.SIGPIPE
"""Exit code if the reader of the output is gone, as where a shell's `head` has read enough."""

_KEPT = "\n\t"

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_RED, _YELLOW, _GREEN = "31", "33", "32"

_COLOURS = {
    **dict.fromkeys(("FAIL", "FAILED", "ERROR", "CORDONED", "LOST"), _RED),
    **dict.fromkeys(("WARN", "WARNING", "SUSPECT", "DEGRADED", "UNKNOWN", "HELD", "PROBATION"), _YELLOW),
    **dict.fromkeys(("PASS", "HEALTHY"), _GREEN),
}

_COLOURED = re.compile(rf"(?<!was )\b({'|'.join(_COLOURS)})\b")
"""The state in which a lost node `was` has no colour: a green HEALTHY there would reassure."""


def for_terminal(text: str) -> str:
    """The text with U+FFFD for every character that is not printable, except line feeds and tabs."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _KEPT else REPLACEMENT for char in text)


def in_one_line(text: str) -> str:
    """The text as `for_terminal` in one line, so that a text of a node cannot look like a line of ours."""
    return for_terminal(" ".join(text.split()))


def say(text: str = "", *, file: TextIO | None = None, end: str = "\n") -> None:
    """Prints and flushes text for people, to stdout or `file`. Characters that its encoding lacks become `?`."""
    out = sys.stdout if file is None else file
    encoding = out.encoding or "utf-8"
    shown = for_terminal(text).encode(encoding, "replace").decode(encoding)
    _write(out, (_coloured(shown) if has_colours(out) else shown) + end)


def clear_screen() -> None:
    """Empties the terminal, so that what is printed next stands at its top."""
    sys.stdout.write("\x1b[H\x1b[2J")


def has_colours(out: TextIO) -> bool:
    """Whether to print colours to `out`: only to a terminal, and not if NO_COLOR or TERM=dumb forbids it."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def line_width() -> int | None:
    """Maximum length of a line: COLUMNS, or the terminal's width; None in a pipe, where nothing is cut."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    return shutil.get_terminal_size().columns


def _coloured(text: str) -> str:
    return _COLOURED.sub(lambda found: f"\x1b[{_COLOURS[found[0]]}m{found[0]}\x1b[0m", text)


def say_json(data: Any) -> None:
    """Prints JSON to stdout, in ASCII. `data` may contain pydantic models."""
    _write(sys.stdout, json.dumps(data, default=lambda model: model.model_dump(mode="json")) + "\n")


def say_items(items: Any) -> None:
    """Prints a whole list as JSON in the form that the API uses for the pages of a list."""
    say_json({"items": list(items), "next_cursor": None})


def copy_out(text: str) -> None:
    """Writes a document to stdout: unchanged into a file or a pipe, and as `for_terminal` on a terminal."""
    _write(sys.stdout, for_terminal(text) if sys.stdout.isatty() else text)


def _write(out: TextIO, text: str) -> None:
    """Writes and flushes. Exits if nobody reads stdout any more; raises OutputFailed if it cannot be written.

    What cannot be written to stderr is lost, because there is no other place to say so.
    """
    try:
        out.write(text)
        out.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # Python flushes again at its end, and would fail again
        if out is sys.stderr:
            return
        if isinstance(error, BrokenPipeError):
            raise SystemExit(NOBODY_READS) from None
        raise OutputFailed(f"cannot write the output: {error.strerror}") from None
