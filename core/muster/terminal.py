"""The one way by which text gets to the person at the keyboard.

Much of that text comes from nodes and plugins: names of devices, findings, errors, what programs printed. A terminal
obeys what it is sent, so none of it may hold commands, nor characters that show text in another order or not at all.
Tests hold every module to this one; only JSON for programs goes out as it is, in ASCII.
"""

import json
import sys
from typing import Any, TextIO

from pydantic import BaseModel

_KEPT = "\n\t"

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def for_terminal(text: str) -> str:
    """The text with a replacement for every character that is not shown as itself; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _KEPT else REPLACEMENT for char in text)


def in_one_line(text: str) -> str:
    """The same in one line, so that what a node says cannot look like a line of ours."""
    return for_terminal(" ".join(text.split()))


def say(text: str = "", *, file: TextIO | None = None, end: str = "\n") -> None:
    """Prints text for people at once, to stdout or `file`; what its encoding lacks becomes a question mark."""
    out = sys.stdout if file is None else file
    encoding = out.encoding or "utf-8"
    shown = for_terminal(text).encode(encoding, "replace").decode(encoding)
    print(shown, file=out, end=end, flush=True)


def say_json(data: BaseModel | Any) -> None:
    """Prints JSON to stdout; whatever is not ASCII is escaped in it."""
    value = data.model_dump(mode="json") if isinstance(data, BaseModel) else data
    print(json.dumps(value), flush=True)  # noqa: T201


def copy_out(text: str) -> None:
    """Writes a document to stdout: as it is into a file or a pipe, and for people on a terminal."""
    sys.stdout.write(for_terminal(text) if sys.stdout.isatty() else text)
