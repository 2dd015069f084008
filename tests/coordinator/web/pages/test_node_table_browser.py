"""The table of nodes in Chromium: windowed, live, sorted, filtered, by keyboard, and in agreement with the server."""

import json
import shutil
from pathlib import Path

import pytest
import pytest_asyncio
from benchmarks.free_ports import free_port
from benchmarks.view_table import table_figures
from playwright.async_api import expect
from tests.coordinator.web.pages.accessibility import violations
from tests.coordinator.web.pages.page_fleet import START, finding, page_fleet, place
from tests.coordinator.web.pages.page_html import MARKUP
from tests.coordinator.web.pages.page_visit import Visit
from tests.coordinator.web.pages.prefix_proxy import prefix_proxy

from muster.model import Inventory, ServiceState, Topology
from muster_coordinator.model.nodes import NodeRecord

pytestmark = pytest.mark.asyncio(loop_scope="module")

SELECTIONS = json.loads(Path(__file__).with_name("selections.json").read_text(encoding="utf-8"))

NODES = 2_000
MOST_ROWS = 80
"""In the document at a time: what a window of 800 pixels shows, with some above and below."""


def record(number):
    inventory = Inventory(topology=place(number), labels={"pool": f"p{number % 4}"})
    name, service = f"gpu-{number:05}", ServiceState.IN_SERVICE
    return NodeRecord(name=name, online=True, first_seen=START, last_seen=START, service=service, inventory=inventory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(live, empty_database, tmp_path_factory):
    """2,000 nodes without evidence, and three that have joined since: one is faulty, one has markup for a rack."""
    directory = tmp_path_factory.mktemp("data")
    shutil.copy(empty_database, directory)
    async with page_fleet(directory, stored=[record(number) for number in range(NODES)]) as fleet:
        await fleet.join("a-bad", "b-odd", topology=lambda _: Topology(rack=MARKUP))
        await fail(fleet, "a-bad")
        yield fleet


async def fail(fleet, node):
    for _ in range(2):
        await fleet.report(node, finding("gemm.slow", MARKUP))


@pytest_asyncio.fixture(loop_scope="module")
async def open_table(browser, fleet):
    """Opens the table as `open_table(query, **options)`, and waits until it is live."""
    contexts = []

    async def begin(query="", at=fleet.url, **options):
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        contexts.append(context)
        visited = Visit(await context.new_page(), at)
        await visited.open(f"/nodes{query}")
        await visited.page.get_by_role("grid").wait_for(state="attached")
        return visited

    yield begin
    for context in contexts:
        await context.close()


def row(page, node):
    return page.locator("tbody tr").filter(has=page.get_by_role("link", name=node, exact=True))


async def shown(page):
    """The nodes in the document, in their order."""
    return await page.locator("tbody a.node").all_inner_texts()


async def test_only_what_is_visible_is_in_the_document(open_table):
    """At the top, in the middle and at the end; a screen reader knows how many rows there are and which these are."""
    page = (visited := await open_table("?sort=name")).page
    grid = page.get_by_role("grid")
    assert await grid.get_attribute("aria-rowcount") == str(NODES + 3)
    await expect(row(page, "gpu-00000")).to_have_attribute("aria-rowindex", "4")
    for node in ("gpu-01000", "gpu-01999"):
        await page.locator("#table").evaluate("(table, part) => table.scrollTo(0, table.scrollHeight * part)", 0.5)
        if node == "gpu-01999":
            await page.locator("#table").evaluate("table => table.scrollTo(0, table.scrollHeight)")
        await expect(row(page, node)).to_be_in_viewport()
        await expect(row(page, node)).to_have_attribute("aria-rowindex", str(int(node[-5:]) + 4))
        assert 10 < await page.locator("tbody tr").count() < MOST_ROWS
    assert visited.wrong == []


async def test_all_rows_are_on_paper(open_table):
    """Afterwards only the visible ones are in the document again."""
    page = (await open_table("?select=gpu-00*")).page
    grid = page.get_by_role("grid")
    await page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert await grid.locator("tbody tr:not(.spacer)").count() == int(await grid.get_attribute("aria-rowcount")) - 1
    await page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert await grid.locator("tbody tr:not(.spacer)").count() < 100


async def test_the_head_stays_in_view(open_table):
    """However far the table is scrolled."""
    page = (await open_table()).page
    await page.locator("#table").evaluate("table => table.scrollTo(0, 32 * 1500)")
    await expect(page.get_by_role("columnheader", name="Node")).to_be_in_viewport()


async def test_a_filter_applies_while_a_person_types(open_table):
    """The URL has it. Typing makes no entry in the history, and the key Enter makes one."""
    page = (await open_table()).page
    field = page.get_by_label("Selection")
    await field.press_sequentially("gpu-0000?")
    await expect(page.locator("#found")).to_have_text("10")
    assert page.url.endswith("/nodes?select=gpu-0000%3F")
    await field.press("Enter")
    await field.fill("gpu-0001?")
    await field.press("Enter")
    await expect(row(page, "gpu-00010")).to_be_visible()
    await page.go_back()
    await expect(field).to_have_value("gpu-0000?")
    await expect(row(page, "gpu-00000")).to_be_visible()
    await page.go_back()
    await expect(page.locator("#found")).to_have_text("2,002")
    assert page.url.endswith("/nodes")
    await page.go_forward()
    await expect(page.locator("#found")).to_have_text("10")


async def test_a_click_on_a_head_sorts(open_table):
    """And another one turns the order around; the URL has it, and what the server makes of it is the same."""
    page = (await open_table("?select=gpu-000*")).page
    await page.evaluate("window.isSamePage = true")
    head = page.get_by_role("columnheader", name="Rack")
    for direction, first in (("ascending", "gpu-00000"), ("descending", "gpu-00099")):
        await head.get_by_role("link").click()
        await expect(head).to_have_attribute("aria-sort", direction)
        assert (await shown(page))[0] == first
        live = await shown(page)
        text = await (await page.request.get(page.url, headers={"Accept": "text/html"})).text()
        assert [node for node in live if node in text] == sorted(live, key=text.index)
    await page.go_back()
    await expect(head).to_have_attribute("aria-sort", "ascending")
    await page.get_by_role("link", name="All nodes").click()
    await page.get_by_role("columnheader", name="State").get_by_role("link").click()
    await expect(page.locator("#found")).to_have_text("2,002")
    assert page.url.endswith("/nodes")
    assert await page.evaluate("window.isSamePage")


async def test_the_coordinator_answers_what_the_browser_cannot(open_table):
    """Labels, in selections and in orders, together with what the browser knows."""
    page = (await open_table()).page
    field = page.get_by_label("Selection")
    await field.fill("label:pool=p1 gpu-0000?")
    await expect(page.locator("#found")).to_have_text("3")
    assert await shown(page) == ["gpu-00001", "gpu-00005", "gpu-00009"]
    await page.goto(f"{page.url}&sort=-label:pool".replace("p1", "p1%2Cp2"))
    await page.locator("[role=grid][aria-rowcount]").wait_for()  # the fleet and the coordinator's answer are there
    await expect(page.locator("tbody a.node").first).to_have_text("gpu-00006")


async def test_a_wrong_selection_is_explained_by_the_coordinator(open_table):
    """The last list stays, and the explanation goes when the selection is right."""
    page = (await open_table("?select=gpu-0000?")).page
    field = page.get_by_label("Selection")
    await field.fill("rak=r1")
    await expect(page.get_by_role("alert")).to_contain_text("unknown key 'rak'; did you mean 'rack'?")
    await expect(field).to_have_attribute("aria-invalid", "true")
    assert len(await shown(page)) == 10
    await field.fill("gpu-00001")
    await expect(page.get_by_role("alert")).to_be_hidden()
    assert await shown(page) == ["gpu-00001"]
    await field.fill("gpu-00001 gpu-00002")
    await expect(page.get_by_text("No node fits this selection now")).to_be_visible()


async def test_the_table_is_used_by_keyboard(open_table):
    """One stop for the key Tab; arrows and others move; Enter opens the page of the node."""
    page = (await open_table("?sort=name")).page
    await page.get_by_role("columnheader", name="Leaf").get_by_role("link").focus()
    await page.keyboard.press("Tab")
    focused = page.locator("tbody :focus")
    for key, node in (
        *(("ArrowDown", "b-odd"), ("ArrowUp", "a-bad"), ("End", "gpu-01999"), ("ArrowUp", "gpu-01998")),
        *(("Home", "a-bad"), ("ArrowDown", "b-odd"), ("ArrowDown", "gpu-00000")),
    ):
        await page.keyboard.press(key)
        await expect(focused).to_have_text(node)
        await expect(focused).to_be_in_viewport()
    assert await page.locator("tbody [tabindex='0']").count() == 1
    await page.keyboard.press("PageDown")
    below = await focused.inner_text()
    assert "gpu-00010" < below < "gpu-00040"
    await page.keyboard.press("PageUp")
    await expect(focused).to_have_text("gpu-00000")
    await page.keyboard.press("ArrowRight")
    await expect(focused).to_have_attribute("title", "unknown")
    await page.keyboard.press("Tab")
    assert await page.locator("tbody :focus").count() == 0
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/nodes/gpu-00000")


async def test_a_change_moves_a_row_that_keeps_the_focus(open_table, fleet):
    """A node that fails moves to the top; the counts follow, and its reader stays on it."""
    page = (await open_table()).page
    failed = page.locator("[data-condition=failed] b")
    faulty = int(await failed.inner_text())
    await page.get_by_label("Selection").fill("name!=b-odd")
    for _ in range(5):
        await page.locator("tbody [tabindex='0']").press("ArrowDown")
    node = await page.locator("tbody :focus").inner_text()
    before = await row(page, node).get_attribute("aria-rowindex")
    await fleet.join(node)
    await fail(fleet, node)
    await expect(row(page, node)).to_contain_text("failed")
    assert await row(page, node).get_attribute("aria-rowindex") != before
    await expect(page.locator("tbody :focus")).to_have_text(node)
    await expect(failed).to_have_text(str(faulty + 1))


async def test_a_change_above_leaves_the_visible_rows_where_they_are(open_table, fleet):
    """Who reads in the middle of the list reads on, and the focus stays although its row is far away."""
    page = (await open_table()).page
    failed = page.locator("[data-condition=failed] b")
    faulty = int(await failed.inner_text())
    await page.locator("tbody [tabindex='0']").press("ArrowDown")
    focused = await page.locator("tbody :focus").inner_text()
    await page.locator("#table").evaluate("table => table.scrollTo(0, 32 * 1000)")
    visible = page.locator("tr[aria-rowindex='1010']")
    await expect(visible).to_be_in_viewport()
    node = await visible.get_by_role("link").inner_text()
    top = (await row(page, node).bounding_box())["y"]
    await fleet.join("gpu-01800")
    await fail(fleet, "gpu-01800")
    await expect(failed).to_have_text(str(faulty + 1))
    assert (await row(page, node).bounding_box())["y"] == top
    await expect(page.locator("tbody :focus")).to_have_text(focused)


async def test_nothing_is_green_while_no_node_is_heard(open_table, fleet):
    """As soon as the coordinator has lost the broker; faults stand."""
    page = (await open_table()).page
    await expect(page.locator("[data-condition=healthy]")).to_be_visible()
    fleet.shell.link.connected = False
    try:
        await expect(page.get_by_text("Not connected to the broker")).to_be_visible()
        await expect(page.locator("[data-condition=healthy]")).to_be_hidden()
        await expect(row(page, "a-bad")).to_contain_text("failed")
    finally:
        fleet.shell.link.connected = True
    await expect(page.locator("[data-condition=healthy]")).to_be_visible()


async def test_the_page_says_that_the_coordinator_is_away(open_table, fleet):
    """It keeps what it has, and goes on when the coordinator is back."""
    page = (await open_table("?select=a-bad")).page
    await page.context.set_offline(True)
    fleet.shell.changes.close()
    await expect(page.get_by_text("No connection to the coordinator for")).to_be_visible(timeout=20_000)
    await expect(row(page, "a-bad")).to_be_visible()
    await page.context.set_offline(False)
    await expect(page.get_by_text("No connection to the coordinator for")).to_be_hidden(timeout=20_000)


async def test_markup_in_names_is_text(open_table):
    """Of racks and findings."""
    page = (visited := await open_table("?select=a-bad")).page
    await expect(row(page, "a-bad")).to_contain_text("<b onmouseover=alert(1)>&amp;")
    assert await page.locator("tbody b, tbody script").count() == 0
    assert visited.wrong == []


async def test_axe_finds_no_violation(open_table):
    """In the table as it is live, empty, and with a refused selection, in light and dark."""
    page = (await open_table(bypass_csp=True)).page
    for text in ("", "gpu-00001 gpu-00002", "rak=r1"):
        await page.get_by_label("Selection").fill(text)
        await expect(page.get_by_role("alert")).to_be_visible(visible=text == "rak=r1")
        assert await violations(page) == [], text


async def test_the_table_works_below_a_prefix(open_table, fleet):
    """With its scripts, its questions to the coordinator and its links."""
    async with prefix_proxy(fleet.url, free_port()) as below:
        visited = await open_table("?select=label:pool=p1", at=below)
        await expect(visited.page.locator("#found")).to_have_text("500")
        await visited.page.get_by_role("link", name="gpu-00001", exact=True).click()
        await visited.page.wait_for_url(f"{below}/nodes/gpu-00001")
        assert (visited.wrong, visited.foreign) == ([], [])


async def test_the_table_needs_no_javascript(browser, fleet):
    """It has pages then, and the heads of columns are links."""
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{fleet.url}/nodes?select=gpu-*")
    assert len(await shown(page)) == 100
    await page.get_by_role("columnheader", name="Leaf").get_by_role("link").click()
    await page.get_by_role("columnheader", name="Leaf").get_by_role("link").click()
    await page.get_by_role("link", name="Next").click()
    await page.wait_for_url("**/nodes?select=gpu-%2A&sort=-leaf&page=2")
    await expect(page.get_by_text("101 to 200 of 2,000")).to_be_visible()
    await context.close()


async def test_groups_follow_the_fleet(open_table, fleet):
    """The coordinator groups, and the page asks it again."""
    page = (await open_table("?sort=name")).page
    await page.get_by_label("Group by").fill("block")
    await page.get_by_label("Group by").press("Enter")
    await page.wait_for_url("**/nodes?sort=name&group=block")
    groups = page.locator("tbody tr")
    await expect(groups.first).to_be_visible()
    before = await groups.count()
    await fleet.join("c-new", topology=lambda _: Topology(block="new-block"))
    await expect(groups).to_have_count(before + 1, timeout=20_000)
    await page.get_by_role("link", name="new-block").click()
    await expect(row(page, "c-new")).to_be_visible()


async def test_the_benchmark_can_filter_and_sort(open_table):
    """How long that may take, it says itself."""
    page = (await open_table("?select=gpu-*")).page
    filters, sorts = await table_figures(page, 1)
    assert (filters.what.partition(" ")[0], sorts.what.partition(" ")[0]) == ("filter", "sort")
    assert min(filters.value, sorts.value) > 0


async def evaluated(page, script, argument):
    """The result of a function of the modules `selection` and `node_order` for each case."""
    return await page.evaluate(
        "async ([script, argument]) => {"
        " const { readSelection } = await import('./static/selection.js');"
        " const { inOrder } = await import('./static/node_order.js');"
        " const rows = argument.nodes.map(node => ({ block: null, rack: null, leaf: null,"
        "   lost: false, left: false, ...node }));"
        " const names = nodes => nodes.map(node => node.name);"
        " const read = text => { const selection = readSelection(text);"
        "   return selection && { ask: selection.remote, exists: selection.exists(rows),"
        "     found: names(rows.filter(row => selection.fits(row))) }; };"
        " return argument.cases.map(text => script === 'read' ? read(text) : names(inOrder(rows, text)));"
        "}",
        [script, {"nodes": SELECTIONS["nodes"], "cases": argument}],
    )


async def test_the_browser_agrees_with_the_server(open_table):
    """On the cases in selections.json: what fits, what it must ask about, what it cannot read, and every order."""
    page = (await open_table("?select=a-bad")).page
    for text, found in zip(
        SELECTIONS["fits"], await evaluated(page, "read", [text for text, _ in SELECTIONS["fits"]]), strict=True
    ):
        assert found == {"ask": "", "exists": True, "found": text[1]}, text
    for (text, ask, _), found in zip(
        SELECTIONS["asks"], await evaluated(page, "read", [text for text, _, _ in SELECTIONS["asks"]]), strict=True
    ):
        assert found["ask"] == ask, text
    for (text, _), found in zip(
        SELECTIONS["refused"], await evaluated(page, "read", [text for text, _ in SELECTIONS["refused"]]), strict=True
    ):
        assert found is None or found["ask"] or not found["exists"], text
    for (sort, names), found in zip(
        SELECTIONS["sorted"], await evaluated(page, "sort", [sort for sort, _ in SELECTIONS["sorted"]]), strict=True
    ):
        assert found == names, sort


async def test_an_error_of_a_driver_has_its_usual_name(open_table, fleet):
    """By its number, with and without a script."""
    await fleet.join("gpu-00050")
    await fleet.report("gpu-00050", finding("gemm.xid", MARKUP, evidence={"xid": 79}))
    page = (await open_table("?select=gpu-00050")).page
    await expect(row(page, "gpu-00050").locator("td").nth(5)).to_have_text("XID 79")
    text = await (await page.request.get(page.url, headers={"Accept": "text/html"})).text()
    assert "<td>XID 79</td>" in text
