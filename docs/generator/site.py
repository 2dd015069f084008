"""What the site does differently from the pages on GitHub: navigation, links to the code, state diagrams.

Loaded by Sphinx as an extension; docs/conf.py names it.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
FRONT = "docs/index"
KINDS = ("Tutorials", "How-to guides", "Reference", "Explanation", "The project")
"""Headings of docs/index.md that become captions of the navigation."""

_SECTION = re.compile(r"^## (?P<title>.+?)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]+)\.md\)")
_ARROW = re.compile(r"^(?P<before>\S+) --> (?P<after>\w+)(?:: (?P<label>.+))?$")


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers what this module does."""
    app.connect("source-read", _add_navigation)
    # Sphinx copies every file that a page links to, at priority 500. Links to the code must be gone by then.
    app.connect("doctree-read", _show_paths_of_code, priority=400)
    app.connect("doctree-read", _tabulate_diagrams)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def navigation(front: str) -> str:
    """The links of docs/index.md as hidden tables of contents, which GitHub would show as blocks of code."""
    sections = {match["title"]: _LINK.findall(match["text"]) for match in _SECTION.finditer(front)}
    trees = (
        f"```{{toctree}}\n:caption: {kind}\n:hidden:\n\n" + "\n".join(dict.fromkeys(sections[kind])) + "\n```\n"
        for kind in KINDS
    )
    return "\n".join(trees)


def arrows(diagram: str) -> list[tuple[str, str, str]]:
    """State, next state and label of every arrow of a Mermaid state diagram."""
    kind, *lines = [line.strip() for line in diagram.strip().splitlines()]
    found = [match.group("before", "after", "label") for line in lines if (match := _ARROW.match(line))]
    if kind != "stateDiagram-v2" or len(found) != len(lines):
        message = "the site can only show state diagrams made of arrows; draw anything else as SVG"
        raise ValueError(message)
    return [("(start)" if before == "[*]" else before, after, label or "") for before, after, label in found]


def _add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == FRONT:
        source[0] += "\n" + navigation(source[0])


def _show_paths_of_code(app: Sphinx, document: nodes.document) -> None:
    """A link to code or to a folder becomes its text, with the path as tooltip: the site holds no code."""
    folder = (ROOT / app.env.docname).parent
    for link in [*document.findall(addnodes.download_reference), *document.findall(addnodes.pending_xref)]:
        target = (folder / link["reftarget"]).resolve()
        is_code = link.get("refdomain") is None and target.is_relative_to(ROOT) and target.exists()
        if is_code and (target.is_dir() or not target.is_relative_to(ROOT / "docs")):
            path = target.relative_to(ROOT).as_posix()
            link.replace_self(nodes.abbreviation("", "", *link.children, explanation=path))


def _tabulate_diagrams(_app: Sphinx, document: nodes.document) -> None:
    """GitHub draws Mermaid diagrams. The site shows the same arrows as a table, which needs no script of 3 MB."""
    for block in list(document.findall(nodes.literal_block)):
        if block.get("language") == "mermaid":
            block.replace_self(_table(("From", "To", "When"), arrows(block.astext())))


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> nodes.table:
    head, body = nodes.thead("", _row(header)), nodes.tbody("", *map(_row, rows))
    columns = [nodes.colspec(colwidth=width) for width in (1, 1, 3)]
    return nodes.table("", nodes.tgroup("", *columns, head, body, cols=len(columns)))


def _row(cells: tuple[str, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))
