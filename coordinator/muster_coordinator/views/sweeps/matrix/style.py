"""Sizes, colours and shapes of the matrix and its legend."""

FONT_PX = 11.0
LINE_PX = 13.0
CHARACTER_PX = 0.6 * FONT_PX
"""The width of a character in usual monospaced fonts."""

GAP_PX = 8.0

PAPER, INK, PALE, CONVICTED = "#ffffff", "#222222", "#a0a0a0", "#b3001b"

UNMEASURED, NO_NUMBER, NO_PAIR = "#f2f2f2", "#fefefe", "#d0d0d0"
"""Cells of pairs that did not run, of pairs that ran and measured nothing, and of a node with itself."""

IN_THE_DARK = {
    PAPER: "#161b22",
    INK: "#e4e8ee",
    PALE: "#7d8794",
    CONVICTED: "#ff8a85",
    UNMEASURED: "#222a34",
    NO_NUMBER: "#171c23",
    NO_PAIR: "#414b58",
}
"""The same where the page around the picture is dark; colours of amounts stay."""

CELL, CROSS = "M{} {}h1v1h-1z", "M{} {}l1 1m-1 0l1-1"
"""Paths with side 1, to be moved and scaled."""
