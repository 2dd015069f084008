"""The cells of the map as SVG. The template would take four times as long: 0.2 s for 10,000 nodes."""

from urllib.parse import quote

from markupsafe import Markup, escape

from muster.terminal import in_one_line
from muster_coordinator.views.pages.fleet_map import MapCell, MapRow


def map_cells(row: MapRow) -> Markup:
    """A row of cells, each a link to the page of its node."""
    return Markup("".join(map(_cell, row.cells)))  # noqa: S704 (each part is escaped, or ours)


def _cell(cell: MapCell) -> str:
    tab_stop = "" if cell.is_tab_stop else ' tabindex="-1"'
    return (
        f'<a href="nodes/{quote(cell.node, safe="")}"{tab_stop}><title>{escape(in_one_line(cell.label))}</title>'
        f'<use href="#{cell.symbol}" x="{cell.x}" width="12" height="12"/></a>'
    )
