"""The pages of sweeps over HTTP."""

from tests.cases import cases
from tests.coordinator.views.pages.page_sweeps import NOW, bad_node, convicted, group, rounds, sweep
from tests.coordinator.web.pages.page_html import WILD, Links, require_links, require_text_only
from yarl import URL

from muster_coordinator.model.events import SweepRequested
from muster_coordinator.model.sweep_records import FailedFabric, FailedNode, MemberRecord, SweepRequest


async def test_empty_pages_say_why(pages):
    """And how to start a sweep."""
    text = Links(await pages.get("/sweeps")).text
    assert "None runs now. muster sweep start starts one." in text
    assert "No sweep has ended yet." in text


async def test_a_running_sweep_stands_above_those_that_have_ended(pages):
    """Its page shows the round so far and how to end it."""
    await pages.fleet.join("n1", "n2", "n3", "n4")
    await pages.fleet.keep(bad_node("n1", "n2", "n3", "n4"))
    await pages.fleet.feed(SweepRequested("runs", SweepRequest(check="collective")))
    assert 'href="./sweeps/runs"' in await pages.get("/")
    text = await pages.get("/sweeps")
    assert text.index("sweeps/runs") < text.index("sweeps/abcdefgh")
    text = Links(await pages.get("/sweeps/runs")).text
    assert "round 1: 2 groups: 2 forming" in text
    assert "muster sweep abort runs" in text
    assert "Nothing is convicted yet" in text


async def test_the_page_of_a_sweep_begins_with_its_culprits(pages):
    """Then come the reason for any node, rounds and pairs; everything has its link."""
    await pages.fleet.join("n1", "n2", "n3", "n4")
    await pages.fleet.keep(bad_node())
    text = await pages.get("/sweeps/abcdefgh")
    shown = Links(text).text
    for one, other in (("no single link or partner is to blame", "Why, for one node"), ("FAIL", "round 1: 2 groups")):
        assert shown.index(one) < shown.index(other)
    assert "muster sweep start --check collective" in shown
    assert '<img src="../api/v1/sweeps/abcdefgh/export?format=matrix" alt="' in text
    assert "FAIL" in await pages.get("/sweeps/abcd")  # a unique prefix names it, too


async def test_a_node_is_explained_run_by_run(pages):
    """As `muster sweep show --why` does; a node that took no part is refused on the page."""
    await pages.fleet.keep(bad_node())
    text = Links(await pages.get("/sweeps/abcdefgh?why=n3")).text
    assert "n3 is cleared: it passed with n4 at 10 GB/s in round 1" in text
    assert "n3 reported PASS" in text
    response, page = await pages.ask("/sweeps/abcdefgh?why=n9")
    assert response.status == 422
    assert "unknown node of sweep abcdefgh: 'n9'" in Links(page).text
    await pages.get("/sweeps/abcdefgh?why=")  # the form without a name


async def test_all_links_lead_somewhere_and_are_relative(pages):
    """To pages of nodes, to the API, and from page to page of the list."""
    await pages.fleet.join("n1", "n2", "n3", "n4")
    for number in range(60):
        await pages.fleet.keep(bad_node(id=f"s{number:02}", created_at=NOW - number))
    path, seen = "/sweeps", 0
    for _ in range(3):
        page = await pages.get(path)
        seen += page.count('<th scope="row">')
        await require_links(pages, path, page)
        later = [link for link in Links(page).links if "cursor=" in link]
        path = str(URL(path).join(URL(later[0]))) if later else ""
    assert (seen, path) == (60, "")
    await require_links(pages, "/sweeps/s01?why=n1", await pages.get("/sweeps/s01?why=n1"))


async def test_text_of_nodes_shows_as_text(pages):
    """Reasons, notes, parameters, findings and places come from nodes and people."""
    wild = {"code": WILD, "reasons": (WILD,)}
    told = MemberRecord(node="n1", measured=({WILD: 1.0},))
    await pages.fleet.keep(
        sweep(
            origin=WILD,
            reason=WILD,
            metric=WILD,
            asked=SweepRequest(check="collective", params={WILD: WILD}, select=WILD),
            nodes=("n1", "n2"),
            failed_nodes=(convicted(FailedNode, node="n1", **wild),),
            failed_fabric=(convicted(FailedFabric, leaves=(WILD,), **wild),),
            rounds=rounds((group("n1", "n2", slow=WILD, reasons=(WILD,), places=(told,)),), learned=(WILD,)),
            inconclusive=("n2",),
            absent={"n3": WILD},
            notes=(f"n2: {WILD}", WILD),
        )
    )
    for path in ("/sweeps", "/sweeps/abcdefgh", "/sweeps/abcdefgh?why=n1"):
        require_text_only(await pages.get(path))
    for path in ("/sweeps/%3Cscript%3E", "/sweeps/abcdefgh?why=%3Cscript%3E"):
        _, page = await pages.ask(path)
        assert "<script>" not in page


@cases(
    "path, status", [("/sweeps/nothing", 404), ("/sweeps?rock=1", 400), ("/sweeps?cursor=x", 422), ("/sweeps/s", 409)]
)
async def test_errors_are_pages(pages, path, status):
    """Programs get the problem that they know."""
    for name in ("s1", "s2"):
        await pages.fleet.keep(sweep(name))
    response, text = await pages.ask(path)
    assert response.status == status
    assert "<h1>" in text
    response, text = await pages.ask(path, Accept="*/*")
    assert response.content_type == "application/problem+json"
