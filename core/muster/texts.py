"""Texts for people: no character in them can trick a reader or a terminal, and none is endless."""

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator

MOST_CHARACTERS = 4096
"""Maximum length of a text for people. The same length is kept of the stderr of a process."""

MOST_CHARACTERS_OF_A_LABEL = 253
"""Maximum length of a short text, such as a model, a place or a version."""

_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Characters that control a terminal, end a program's argument, change the direction of writing or are invisible."""


def readable(text: str) -> str:
    """The text with U+FFFD for every character that controls a terminal or is invisible."""
    return text if text.isascii() and text.isprintable() else _UNREADABLE.sub("\ufffd", text)


def shortened(text: str, most: int) -> str:
    """The text, cut to `most` characters with an ellipsis at its end."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _readable_and_at_most(most: int) -> Callable[[str], str]:
    def made(text: str) -> str:
        if len(text) <= most and text.isascii() and text.isprintable():
            return text  # as nearly all are; an inventory has some fifty
        return shortened(readable(text), most)

    return made


Text = Annotated[str, AfterValidator(_readable_and_at_most(MOST_CHARACTERS))]
"""A text for people. Every text is valid: unreadable characters are replaced, and a long text is cut."""

Label = Annotated[str, AfterValidator(_readable_and_at_most(MOST_CHARACTERS_OF_A_LABEL))]
"""A short text for people, such as a version or the name of a model. Treated like a Text."""
