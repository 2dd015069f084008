"""Pages that follow the fleet, in Chromium."""

import asyncio
import json
import shutil
import time
from contextlib import asynccontextmanager
from itertools import count

import pytest
import pytest_asyncio
from benchmarks.free_ports import free_port
from playwright.async_api import expect
from tests.coordinator.views.pages.fleet_rows import row as page_row
from tests.coordinator.web.pages.accessibility import violations
from tests.coordinator.web.pages.page_fleet import LOST_GPU, SLOW, finding, page_fleet
from tests.coordinator.web.pages.page_html import MARKUP
from tests.coordinator.web.pages.page_visit import Visit
from tests.coordinator.web.pages.prefix_proxy import prefix_proxy

from muster.model import Health, ServiceState
from muster_coordinator.model.events import SweepAbortRequested, SweepRequested
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.views.pages.page_row import as_stale

pytestmark = pytest.mark.asyncio(loop_scope="module")

NODES = tuple(f"n{number:02}" for number in range(1, 41))
HIDE = """hidden => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest_asyncio.fixture(loop_scope="module")
async def new_fleet(live, empty_database, tmp_path):
    """Starts a coordinator with these nodes, 32 in a rack, for a context. Each has an epoch of its own."""
    epochs = count(3)

    @asynccontextmanager
    async def begin(*nodes):
        epoch = next(epochs)
        directory = tmp_path / f"{epoch}"
        directory.mkdir()
        shutil.copy(empty_database, directory)
        async with page_fleet(directory, epoch=epoch) as made:
            await made.join(*nodes)
            yield made

    return begin


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(new_fleet):
    async with new_fleet(*NODES) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def context(browser):
    made = await browser.new_context()
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def visit(context):
    """Opens a page."""

    async def begin(url, path="/"):
        visited = Visit(await context.new_page(), url)
        await visited.open(path)
        return visited

    return begin


async def is_followed(fleet, viewers=1):
    """Returns when so many browsers follow the changes."""
    async with asyncio.timeout(20):
        while fleet.shell.changes.viewers != viewers:
            await asyncio.sleep(0.02)


def cell(page, label):
    return page.locator("svg.rack a").filter(has_text=label)


async def test_a_change_is_on_the_map(fleet, visit):
    """With its numbers and its cause, and without a new page; what has the focus keeps it."""
    visited = await visit(fleet.url)
    page = visited.page
    await is_followed(fleet)
    await page.get_by_role("link", name="n17: healthy").focus()
    for _ in range(2):
        await fleet.report("n03", SLOW)
    await expect(cell(page, "n03: failed, CORDONED")).to_have_count(1)
    await expect(page.locator("[data-condition=failed] b")).to_have_text("1")
    await expect(page.locator("section[aria-labelledby=causes]")).to_contain_text("gemm.slow")
    await expect(page.locator("h1")).to_contain_text("39 of 40")
    assert await page.evaluate("document.activeElement.textContent") == "n17: healthy"
    assert visited.wrong == []


async def test_the_map_is_made_again_when_a_leaf_is_bad(fleet, visit):
    """It has a stripe then. For one node only the text is: in a large fleet the map takes half a second."""
    visited = await visit(fleet.url)
    await is_followed(fleet)
    asked: list[str] = []
    visited.page.on("request", lambda request: asked.append(request.url.removeprefix(fleet.url)))
    await fleet.report("n33", LOST_GPU)
    await expect(visited.page.locator("h1")).to_contain_text("39 of 40")
    await fleet.report("n05", LOST_GPU)
    # A text comes at least 2 s after the one before, which would have asked for the map 0.3 s after it came.
    await expect(visited.page.locator("h1")).to_contain_text("38 of 40")
    assert "/?part=text" in asked
    assert "/" not in asked  # the page with its map
    for node in ("n34", "n35", "n36"):
        await fleet.report(node, LOST_GPU)
    await expect(visited.page.locator("rect.stripe title")).to_have_text("leaf03: bad as a whole")


async def test_what_changes_before_a_page_listens_is_on_it(fleet, visit, monkeypatch):
    """Its text shows it, although nothing changes afterwards."""
    may_answer, snapshot = asyncio.Event(), fleet.shell.changes.snapshot

    async def later():
        await may_answer.wait()
        return await snapshot()

    monkeypatch.setattr(fleet.shell.changes, "snapshot", later)
    page = (await visit(fleet.url)).page
    await fleet.report("n14", LOST_GPU)
    may_answer.set()
    await expect(page.locator("section[aria-labelledby=causes]")).to_contain_text("XID 79")


async def test_tabs_share_one_stream(fleet, visit):
    """All eight follow, and one that is closed ends nothing."""
    tabs = [await visit(fleet.url) for _ in range(8)]
    await is_followed(fleet)
    await tabs[0].page.close()
    await fleet.report("n05", LOST_GPU)
    for visited in tabs[1:]:
        await expect(cell(visited.page, "n05: suspect")).to_have_count(1)
    assert fleet.shell.changes.viewers == 1


async def test_a_hidden_tab_follows_nothing(fleet, visit):
    """When it is shown again, it shows the present state."""
    page = (await visit(fleet.url)).page
    await is_followed(fleet)
    await page.evaluate(HIDE, True)
    await fleet.report("n06", LOST_GPU)
    await is_followed(fleet, viewers=0)
    await page.evaluate(HIDE, False)
    await expect(cell(page, "n06: suspect")).to_have_count(1)
    await expect(page.locator("section[aria-labelledby=causes]")).to_contain_text("XID 79")


async def test_a_coordinator_that_is_gone_is_said(new_fleet, visit):
    """Until another one is there; then the page shows what that one knows."""
    port = free_port()
    async with new_fleet(*NODES) as first, prefix_proxy(first.url, port) as below:
        page = (await visit(below)).page
        await first.report("n07", LOST_GPU)
        await expect(cell(page, "n07: suspect")).to_have_count(1)
    await expect(page.locator("#stale")).to_contain_text("has not answered for", timeout=20_000)
    assert await page.evaluate("document.documentElement.className") == "stale"
    async with new_fleet(*NODES, "n99") as second, prefix_proxy(second.url, port):
        await second.report("n08", LOST_GPU)
        await expect(page.locator("#stale")).to_be_hidden(timeout=20_000)
        await expect(cell(page, "n08: suspect")).to_have_count(1)
        await expect(cell(page, "n07: healthy")).to_have_count(1)
        await expect(cell(page, "n99: healthy")).to_have_count(1)
        assert await page.locator("svg.rack a").count() == 41


async def test_a_coordinator_without_its_broker_is_said(fleet, visit):
    """Nothing is green then. Afterwards all is as before."""
    page = (await visit(fleet.url)).page
    await is_followed(fleet)
    fleet.shell.link.connected = False
    await expect(page.locator("#stale")).to_contain_text("not connected to its broker")
    await expect(cell(page, ": unknown")).to_have_count(40)
    fleet.shell.link.connected = True
    await expect(page.locator("#stale")).to_be_hidden()
    await expect(cell(page, ": healthy")).to_have_count(40)


async def test_the_page_of_a_node_follows_it(fleet, visit):
    """Details that a person has opened stay open."""
    page = (await visit(fleet.url, "/nodes/n09")).page
    await is_followed(fleet)
    await fleet.report("n10", SLOW)
    await fleet.report("n09", LOST_GPU)
    await expect(page.locator("section[aria-labelledby=why]")).to_contain_text("XID 79")
    await expect(page.locator("section[aria-labelledby=story]")).to_contain_text("HEALTHY to SUSPECT")
    await expect(page).to_have_title("n09: suspect, CORDONED · prod-h100 · muster")


async def test_sweeps_are_followed(fleet, visit):
    """One that begins appears, and leaves the list of the running ones when it ends."""
    page = (await visit(fleet.url, "/sweeps")).page
    await is_followed(fleet)
    await fleet.feed(SweepRequested("abcdefgh", SweepRequest(check="collective", nodes=("n01", "n02"))))
    await expect(page.locator("section[aria-labelledby=running]")).to_contain_text("abcdefgh")
    await fleet.feed(SweepAbortRequested("abcdefgh", "enough"))
    await expect(page.locator("section[aria-labelledby=ended]")).to_contain_text("abcdefgh", timeout=15_000)


async def test_a_sweep_of_a_moment_is_shown(fleet, visit):
    """One that begins and ends between two looks at the numbers of the fleet, which then differ in one only."""
    page = (await visit(fleet.url, "/sweeps")).page
    await is_followed(fleet)
    await asyncio.sleep(4.0)  # the page has no other reason to be made again
    fleet.shell.pipeline.feed(SweepRequested("abcdefgh", SweepRequest(check="collective", nodes=("n01", "n02"))))
    await fleet.feed(SweepAbortRequested("abcdefgh", "enough"))
    await expect(page.locator("section[aria-labelledby=ended]")).to_contain_text("abcdefgh", timeout=15_000)


async def test_what_is_stored_late_is_shown(fleet, visit, monkeypatch):
    """A viewer hears that a sweep has ended before the database has it, and the page is made of what it has."""
    page = (await visit(fleet.url, "/sweeps")).page
    await is_followed(fleet)
    await fleet.feed(SweepRequested("abcdefgh", SweepRequest(check="collective", nodes=("n01", "n02"))))
    await expect(page.locator("section[aria-labelledby=running]")).to_contain_text("abcdefgh")
    await asyncio.sleep(2.5)  # the next change is shown at once
    read, before, stored_at = fleet.store.sweeps, await fleet.store.sweeps(10, None), time.monotonic() + 1.0

    async def not_stored_yet(limit, cursor):
        return await read(limit, cursor) if time.monotonic() >= stored_at else before

    monkeypatch.setattr(fleet.store, "sweeps", not_stored_yet)
    await fleet.feed(SweepAbortRequested("abcdefgh", "enough"))
    await expect(page.locator("section[aria-labelledby=ended]")).to_contain_text("abcdefgh")


async def test_what_a_person_types_stays(fleet, visit):
    """A section with a field in use is left alone; the others change."""
    page = (await visit(fleet.url, "/events")).page
    await is_followed(fleet)
    await page.get_by_label("Node", exact=True).fill("n1")
    await fleet.report("n11", LOST_GPU)
    await expect(page.locator("main")).to_contain_text("XID 79")
    assert await page.get_by_label("Node", exact=True).input_value() == "n1"


async def test_markup_stays_text(fleet, visit):
    """Also in what a script puts into the page."""
    visited = await visit(fleet.url)
    await is_followed(fleet)
    await fleet.report("n13", finding(summary=MARKUP))
    causes = visited.page.locator("section[aria-labelledby=causes]")
    await expect(causes).to_contain_text(MARKUP)
    assert (await causes.locator("script, b").count(), visited.wrong) == (0, [])


async def test_arrow_keys_move_within_a_rack(fleet, visit):
    """The tab key stops once in each; the first stop is what is wrong."""
    page = (await visit(fleet.url)).page
    stops = page.locator("svg.rack a[tabindex='0']")
    await expect(stops).to_have_count(2)
    await stops.first.focus()
    seen = []
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "End", "Home"):
        await page.keyboard.press(key)
        seen.append((await page.evaluate("document.activeElement.textContent"))[:3])
    assert seen == ["n02", "n10", "n09", "n01", "n32", "n01"]
    await expect(stops).to_have_count(2)
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/nodes/n02")


async def test_keys(fleet, visit):
    """They lead to pages and lines, and are text in a field."""
    page = (await visit(fleet.url)).page
    await fleet.report("n12", LOST_GPU)
    await expect(page.locator("section[aria-labelledby=causes]")).to_contain_text("XID 79")
    await page.keyboard.press("j")
    assert await page.evaluate("document.activeElement.matches('main a')")
    await page.keyboard.press("/")
    await page.keyboard.type("gs?")
    assert await page.locator("#find").input_value() == "gs?"
    await page.locator("#find").blur()
    await page.keyboard.press("?")
    await page.wait_for_url("**/help")
    for letter, path in (("q", "quarantine"), ("n", "nodes"), ("s", "sweeps"), ("e", "events"), ("f", "")):
        await page.keyboard.press("g")
        await page.keyboard.press(letter)
        await page.wait_for_url(f"{fleet.url}/{path}")


async def test_help_and_the_banner_are_accessible(browser, fleet):
    """In light and dark."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{fleet.url}/help")
    found = [await violations(page)]
    await page.goto(fleet.url)
    fleet.shell.link.connected = False
    await expect(page.locator("#stale")).to_be_visible()
    found.append(await violations(page))
    await context.close()
    assert found == [[], []]


async def test_conditions_are_those_of_the_coordinator(fleet, visit):
    """Every combination of health, service state, silence and dry run, as the script and as the server name it."""
    page = (await visit(fleet.url, "/help")).page
    rows = [
        page_row(f"n{number}", health=health, service=service, lost=lost, left=left, dry_run=dry_run)
        for number, (health, service, lost, left, dry_run) in enumerate(
            (health, service, lost, left, dry_run)
            for health in Health
            for service in ServiceState
            for lost in (False, True)
            for left in (False, True)
            for dry_run in (False, True)
        )
    ]
    for is_connected in (True, False):
        expected = [row if is_connected else as_stale(row) for row in rows]
        snapshot = {
            "at": "2026-01-01T00:00:00Z",
            "fleet": {"is_connected": is_connected},
            "names": {
                "health": [*Health],
                "service": [*ServiceState],
                "place": {"block": [None], "rack": [None], "leaf": [None]},
                "worst": [],
            },
            "nodes": {
                "name": [row.name for row in rows],
                "health": [[*Health].index(row.health) for row in rows],
                "service": [[*ServiceState].index(row.service) for row in rows],
                "lost": [int(row.lost) for row in rows],
                "left": [int(row.left) for row in rows],
                "dry_run": [int(row.dry_run) for row in rows],
                "place": [0] * len(rows),
                "worst": [None] * len(rows),
                "findings": [0] * len(rows),
                "changed_s": [None] * len(rows),
            },
        }
        script = """async snapshot => {
            const { FleetState } = await import(new URL("static/fleet_state.js", location.href));
            return new FleetState(JSON.parse(snapshot)).rows.map(row => [row.condition, row.isOut, row.stateText]);
        }"""
        found = await page.evaluate(script, json.dumps(snapshot))
        assert found == [[row.condition, row.is_out, row.state_text] for row in expected]
