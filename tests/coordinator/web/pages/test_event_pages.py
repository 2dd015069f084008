"""The page of events over HTTP."""

from tests.cases import cases
from tests.coordinator.web.pages.page_fleet import SLOW, finding
from tests.coordinator.web.pages.page_html import WILD, Links, require_links, require_text_only
from yarl import URL

from muster_coordinator.model.events import AppendStory
from muster_coordinator.model.nodes import StoryEntry


async def test_a_fleet_without_nodes_says_why(pages):
    """It is empty."""
    assert "Nothing has happened yet" in await pages.get("/events")


async def test_what_happened_to_any_node_is_listed(pages):
    """The latest first, with links that lead somewhere."""
    await pages.fleet.join("n1", "n2")
    await pages.fleet.report("n1", SLOW)
    page = await pages.get("/events")
    text = Links(page).text
    assert text.index("310 TFLOP/s") < text.index("heard for the first time")
    await require_links(pages, "/events", page)


async def test_a_filter_is_in_the_url(pages):
    """By node and kind; the form shows it, and links keep it."""
    await pages.fleet.join("n1", "n2")
    text = await pages.get("/events?node=n1&kind=joined")
    assert 'value="n1"' in text
    assert "<option selected>joined</option>" in text
    assert text.count("heard for the first time") == 1
    assert "nodes/n2" not in text
    await pages.get("/events?node=&kind=")  # the form without a choice


@cases("path", ["/events?node=n9", "/events?kind=rock"])
async def test_a_wrong_filter_is_explained(pages, path):
    """With what is valid."""
    await pages.fleet.join("n1")
    response, text = await pages.ask(path)
    assert response.status == 422
    assert "(valid: " in Links(text).text
    assert "No stored event" not in text


async def test_events_come_in_pages(pages):
    """Each once, to the first one."""
    entries = [
        StoryEntry(id=f"e{number}", at=pages.fleet.now, node="n1", kind="found", text=f"found {number}.")
        for number in range(450)
    ]
    await pages.fleet.store.write([AppendStory(entry) for entry in entries])
    path, seen = "/events?kind=found", []
    while path:
        page = await pages.get(path)
        seen.append(page.count("<p>found "))
        later = [link for link in Links(page).links if "cursor=" in link]
        path = str(URL("/events").join(URL(later[0]))) if later else ""
    assert seen == [200, 200, 50]


async def test_text_of_nodes_shows_as_text(pages):
    """Findings stand in stories."""
    await pages.fleet.join("n1")
    await pages.fleet.report("n1", finding(summary=WILD))
    require_text_only(await pages.get("/events"))
    _, page = await pages.ask("/events?node=%3Cscript%3E&kind=%3Cscript%3E")
    assert "<script>" not in page
