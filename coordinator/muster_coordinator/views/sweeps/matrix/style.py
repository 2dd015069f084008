"""Sizes, colours and shapes of the matrix and its legend."""

FONT_PX = 11.0
LINE_PX = 13.0
CHARACTER_PX = 0.6 * FONT_PX
"""The width of a character in usual monospaced fonts."""

GAP_PX = 8.0

INK, PALE, CONVICTED = "#222222", "#a0a0a0", "#b3001b"

UNMEASURED, NO_NUMBER, NO_PAIR = "#f2f2f2", "#ffffff", "#d0d0d0"
"""Cells of pairs that did not run, of pairs that ran and measured nothing, and of a node with itself."""

CELL, CROSS = "M{} {}h1v1h-1z", "M{} {}l1 1m-1 0l1-1"
"""Paths with side 1, to be moved and scaled."""
