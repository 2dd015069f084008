"""Texts for people: no character in them can trick a reader or a terminal, and none is endless."""

import re
from typing import Annotated

from pydantic import AfterValidator

MOST_CHARACTERS = 4096
"""Maximum length of a text for people. The same length is kept of the stderr of a process."""

MOST_CHARACTERS_OF_A_LABEL = 253
"""Maximum length of a short text, such as a model, a place or a version."""

_UNREADABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]"
)
"""Characters that control a terminal, end a program's argument, change the direction of writing or are invisible.

The invisible ones are those that Unicode calls `Default_Ignorable_Code_Point`, without the variation selectors: these
choose between two shapes of the character before them.
"""

_LINE_BREAKS = re.compile(r"[\t\n]+")


def readable(text: str) -> str:
    """The text with U+FFFD for every character that controls a terminal or is invisible."""
    return text if text.isascii() and text.isprintable() else _UNREADABLE.sub("\ufffd", text)


def shortened(text: str, most: int) -> str:
    """The text, cut to `most` characters with an ellipsis at its end."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(text: str) -> str:
    return shortened(readable(text), MOST_CHARACTERS)


def _label(text: str) -> str:
    if len(text) <= MOST_CHARACTERS_OF_A_LABEL and text.isascii() and text.isprintable():
        return text  # as nearly all are; an inventory has some fifty
    return shortened(_LINE_BREAKS.sub(" ", readable(text)), MOST_CHARACTERS_OF_A_LABEL)


Text = Annotated[str, AfterValidator(_text)]
"""A text for people. Every text is valid: unreadable characters are replaced, and a long text is cut."""

Label = Annotated[str, AfterValidator(_label)]
"""A short text for people in one line, such as a version or the name of a model. Treated like a Text."""
