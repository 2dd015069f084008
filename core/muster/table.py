"""Tables for people: aligned columns, no frame, so that they can be read, cut and searched."""

from collections.abc import Iterable, Sequence

from muster.terminal import for_terminal


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The rows below the header, every column as wide as its longest cell; each cell is one line."""
    lines = [header, *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _cell(text: str) -> str:
    """The text in one line, because a text of a node must not look like another row."""
    return for_terminal(" ".join(text.splitlines()))
