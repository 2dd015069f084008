"""Long texts where several stand on a page: the findings of sweeps list every reason, one after the other."""

from muster.texts import shortened

_BETWEEN = "; "

MOST = 180
"""Characters: two or three lines."""


def gist(text: str) -> str:
    """The text, or if it is long its first parts that fit, with an ellipsis."""
    if len(text) <= MOST:
        return text
    end = text.rfind(_BETWEEN, 0, MOST)
    return f"{text[:end]} …" if end > 0 else shortened(text, MOST)
