"""The page of the table of nodes over HTTP: filtered, sorted and grouped by its URL."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from tests.cases import cases
from tests.coordinator.web.pages.page_fleet import LOST_GPU, SLOW
from tests.coordinator.web.pages.page_html import WILD, Links, require_links, require_text_only
from yarl import URL

from muster.errors import Refused
from muster.model import Health, ServiceState, Topology
from muster_coordinator.topology.selection import parse_selection
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.pages.node_table import in_order

SELECTIONS = json.loads(Path(__file__).with_name("selections.json").read_text(encoding="utf-8"))


def names(page):
    """The nodes of the table, in its order."""
    return re.findall(r'<th scope="row"><a class="node" href="[^"]*nodes/([^"]+)">', page)


async def test_the_table_is_sorted_by_its_url(pages):
    """By the keys of the API; the head of the column says so, and a click on it turns the order around."""
    await pages.fleet.join("n1", "n2", "n3")
    await pages.fleet.report("n2", SLOW)
    assert names(await pages.get("/nodes")) == ["n2", "n1", "n3"]
    page = await pages.get("/nodes?sort=name")
    assert names(page) == ["n1", "n2", "n3"]
    assert re.search(r'aria-sort="ascending"><a href="[^"]*sort=-name"', page)
    page = await pages.get("/nodes?sort=-name")
    assert names(page) == ["n3", "n2", "n1"]
    assert 'aria-sort="descending"' in page
    assert '<input type="hidden" name="sort" value="-name">' in page  # the form keeps it


async def test_groups_have_their_conditions(pages):
    """Those with the most faults first; each opens as a selection of its nodes."""
    await pages.fleet.join(*(f"n{number:02}" for number in range(40)), labels={"pool": "a"})
    await pages.fleet.report("n35", SLOW)
    page = await pages.get("/nodes?group=rack&select=n*")
    assert re.findall(r"<bdi>(r\d+)</bdi>", page) == ["r02", "r01"]
    (link,) = [link for link in Links(page).links if "rack%3Dr02" in link]
    assert sorted(names(await pages.get("/" + link.removeprefix("./")))) == [f"n{number}" for number in range(32, 40)]
    await require_links(pages, "/nodes?group=rack&select=n*", page)
    assert "<bdi>a</bdi>" in await pages.get("/nodes?group=label:pool")
    assert "none known" in await pages.get("/nodes?group=label:other")


async def test_the_pager_keeps_everything_else(pages):
    """Selection, order and groups."""
    await pages.fleet.join(*(f"n{number:03}" for number in range(250)), topology=None)
    path, seen = "/nodes?select=n*&sort=-name", []
    while path:
        page = await pages.get(path)
        seen += names(page)
        later = re.findall(r'rel="next" href="([^"]+)"', page)
        path = str(URL("/nodes").join(URL(unescape(later[0])))) if later else ""
    assert seen == [f"n{number:03}" for number in reversed(range(250))]
    assert "101 to 200 of 250" in await pages.get("/nodes?group=name&page=2")


@cases("path, text", [("sort=rak", "sort: unknown key 'rak'"), ("group=rak", "group: unknown key 'rak'")])
async def test_a_wrong_key_is_explained(pages, path, text):
    """On the page, which shows no nodes then."""
    await pages.fleet.join("n1")
    response, page = await pages.ask(f"/nodes?{path}")
    assert response.status == 422
    assert text in Links(page).text
    assert names(page) == []


async def test_a_silent_node_says_since_when(pages):
    """Beside what it has."""
    await pages.fleet.join("n1", "n2")
    await pages.fleet.report("n1", LOST_GPU)
    await pages.fleet.leave("n2")
    await pages.fleet.pass_time(300)
    page = await pages.get("/nodes")
    assert "XID 79 GPU5" in page
    assert page.count(">5 min</time>") == 2


async def test_text_of_nodes_shows_as_text_in_groups(pages):
    """Places and labels."""
    await pages.fleet.join("n1", topology=lambda _: Topology(rack=WILD), labels={"pool": "a"})
    require_text_only(await pages.get("/nodes?group=rack"))


def candidate(*, name, health, service, labels=None, lost=False, left=False, **place):
    return Candidate(name, Topology(**place), labels or {}, Health(health), ServiceState(service), lost=lost, left=left)


class TestSharedCases:
    """The cases in selections.json, which test_node_table_browser.py has in the browser."""

    nodes = tuple(candidate(**node) for node in SELECTIONS["nodes"])

    @cases("select, found", [*SELECTIONS["fits"], *((select, found) for select, _, found in SELECTIONS["asks"])])
    def test_selections_fit(self, select, found):
        """Names with ranges and patterns, places, states, labels."""
        assert [*parse_selection(select).fitting(self.nodes, {}).nodes] == found

    @cases("select, reason", SELECTIONS["refused"])
    def test_selections_are_refused(self, select, reason):
        """With the reason that the page shows."""
        with pytest.raises(Refused, match=re.escape(reason)):
            parse_selection(select).fitting(self.nodes, {})

    @cases("sort, found", SELECTIONS["sorted"])
    def test_orders(self, sort, found):
        """Of every key that the browser has."""
        assert [node.name for node in in_order(self.nodes, sort)] == found
