"""Renders the templates. Whatever text a page shows, it shows as text: see `_as_text`."""

from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from muster.instants import instant_text
from muster.model import format_instant
from muster.nouns import count
from muster.terminal import for_terminal, in_one_line
from muster.version import __version__
from muster_coordinator.model.acceptance_records import AcceptanceFilter
from muster_coordinator.views.pages.acceptance_page import without_gpu_text
from muster_coordinator.views.pages.ages import age_text, duration_text
from muster_coordinator.views.pages.headline import count_text
from muster_coordinator.views.pages.node_page import metrics_text
from muster_coordinator.views.pages.node_table import COLUMNS, TableAddress
from muster_coordinator.views.pages.page_row import SELECTIONS
from muster_coordinator.web.pages.map_cells import map_cells
from muster_coordinator.web.pages.static_files import static_path

NO_FILTER = AcceptanceFilter()


def render(template: str, **values: Any) -> str:
    """The page of this template. Values that it names must be given."""
    return _environment().get_template(f"{template}.html.jinja").render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("muster_coordinator.web.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_as_text,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": count_text, "noun": count, "time": _time, "metrics": metrics_text, "lines": _lines}
    environment.filters |= {
        "age": age_text,
        "duration": duration_text,
        "instant": instant_text,
        "instant_iso": format_instant,
        "no_gpu": without_gpu_text,
    }
    environment.globals |= {"node_path": node_path, "nodes_path": _nodes_path, "static_path": static_path}
    environment.globals |= {"map_cells": map_cells}
    environment.globals |= {"events_path": _events_path, "table_path": _table_path}
    environment.globals |= {"sweep_path": sweep_path, "sweeps_path": sweeps_path}
    environment.globals |= {"acceptance_path": acceptance_path, "acceptances_path": _acceptances_path}
    environment.globals |= {"SELECTIONS": SELECTIONS, "COLUMNS": COLUMNS, "version": __version__}
    return environment


def _as_text(value: Any) -> Any:
    """Text without control characters and marks of writing direction, which could rearrange what a person reads."""
    return in_one_line(value) if type(value) is str else value


def _lines(text: str) -> Markup:
    """A text whose lines and spaces stay as they are, for `<pre>`."""
    return Markup.escape(for_terminal(text))


def _time(at: float, now: float) -> Markup:
    """How long ago something was; the time itself is its title."""
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        format_instant(at), instant_text(at), age_text(now - at)
    )


def node_path(name: str) -> str:
    """The path of the page of a node, below `/`."""
    return f"nodes/{quote(name, safe='')}"


def _nodes_path(select: str | None = None) -> str:
    """The path of the table of these nodes, below `/`."""
    return _table_path(TableAddress(select=select))


def _table_path(address: TableAddress, **changes: Any) -> str:
    """The path of the table of nodes with this address after some changes, below `/`."""
    query = replace(address, **changes).parameters
    return f"nodes?{urlencode(query)}" if query else "nodes"


def sweep_path(id: str) -> str:
    """The path of the page of a sweep, below `/`."""
    return f"sweeps/{quote(id, safe='')}"


def sweeps_path(**query: str) -> str:
    """The path of the page of the sweeps with this query, below `/`."""
    return _with_query("sweeps", **query)


def acceptance_path(id: str) -> str:
    """The path of the page of an acceptance, below `/`."""
    return f"acceptance/{quote(id, safe='')}"


def _acceptances_path(wanted: AcceptanceFilter = NO_FILTER, cursor: str | None = None) -> str:
    """The path of a page of the acceptances, below `/`."""
    return _with_query("acceptance", node=wanted.node, verdict=wanted.verdict, suite=wanted.suite, cursor=cursor)


def _events_path(node: str | None = None, kind: str | None = None, cursor: str | None = None) -> str:
    """The path of a page of the events, below `/`."""
    return _with_query("events", node=node, kind=kind, cursor=cursor)


def _with_query(path: str, **given: str | None) -> str:
    query = urlencode({key: value for key, value in given.items() if value})
    return f"{path}?{query}" if query else path
