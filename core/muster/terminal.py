"""Prints text for people. Every command prints through this module; a test checks that.

Much of the text comes from nodes and plugins: names of devices, findings, errors, output of programs. A terminal obeys
control characters. Therefore this module replaces them, and also characters that are invisible or change the order of
others. JSON for programs is printed as it is, in ASCII.
"""

import json
import sys
from typing import Any, TextIO

from pydantic import BaseModel

_KEPT = "\n\t"

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def for_terminal(text: str) -> str:
    """The text with U+FFFD for every character that is not printable, except line feeds and tabs."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _KEPT else REPLACEMENT for char in text)


def in_one_line(text: str) -> str:
    """The text as `for_terminal` in one line. A text of a node in one line cannot look like a line of ours."""
    return for_terminal(" ".join(text.split()))


def say(text: str = "", *, file: TextIO | None = None, end: str = "\n") -> None:
    """Prints and flushes text for people, to stdout or `file`. Characters that its encoding lacks become `?`."""
    out = sys.stdout if file is None else file
    encoding = out.encoding or "utf-8"
    shown = for_terminal(text).encode(encoding, "replace").decode(encoding)
    print(shown, file=out, end=end, flush=True)


def say_json(data: BaseModel | Any) -> None:
    """Prints JSON to stdout, in ASCII."""
    value = data.model_dump(mode="json") if isinstance(data, BaseModel) else data
    print(json.dumps(value), flush=True)  # noqa: T201


def copy_out(text: str) -> None:
    """Writes a document to stdout: unchanged into a file or a pipe, and as `for_terminal` on a terminal."""
    sys.stdout.write(for_terminal(text) if sys.stdout.isatty() else text)
