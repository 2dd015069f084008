"""Tables for people: aligned columns, no frame, so that they can be read, cut and searched.

Written by hand, because the texts come from nodes: a cell must not bring control characters or further lines.
"""

from collections.abc import Iterable, Mapping, Sequence

from muster.terminal import for_terminal

GAP = "  "
"""Between two columns."""


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    width: int | None = None,
    shrinkable: Mapping[str, int] | None = None,
) -> str:
    """The rows below the header, every column as wide as its longest cell; each cell is one line.

    With `width`, the `shrinkable` columns are cut until no line is longer: one after the other,
    each to no less than the width given for it. A longer cell ends with an ellipsis.
    """
    lines = [tuple(header), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        _shrink(widths, header, width, shrinkable or {})
    return "\n".join(_line(line, widths) for line in lines)


def _shrink(widths: list[int], header: Sequence[str], width: int, shrinkable: Mapping[str, int]) -> None:
    for name, least in shrinkable.items():
        column = header.index(name)
        excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
        widths[column] -= max(0, min(excess, widths[column] - least))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    fitted = (_cut(cell, width).ljust(width) for cell, width in zip(cells, widths, strict=True))
    return GAP.join(fitted).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _cell(text: str) -> str:
    """The text in one line, because a text of a node must not look like another row."""
    return for_terminal(" ".join(text.splitlines()))
