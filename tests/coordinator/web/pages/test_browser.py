"""The pages in Chromium from Debian: without errors, accessible, by keyboard, below a prefix, without JavaScript."""

import shutil

import pytest
import pytest_asyncio
from benchmarks.free_ports import free_port
from tests.coordinator.views.pages.page_sweeps import bad_node
from tests.coordinator.web.acceptances import acceptance
from tests.coordinator.web.pages.accessibility import violations
from tests.coordinator.web.pages.page_fleet import LOST_GPU, SLOW, finding, page_fleet
from tests.coordinator.web.pages.page_visit import Visit
from tests.coordinator.web.pages.prefix_proxy import prefix_proxy

from muster.model import Action, Severity, Verdict
from muster_coordinator.model.acceptance_records import acceptance_record
from muster_coordinator.model.events import SweepRequested
from muster_coordinator.model.sweep_records import SweepRequest

pytestmark = pytest.mark.asyncio(loop_scope="module")

CURVE = {"title": "bus bandwidth", "x_label": "bytes", "y_label": "GB/s", "x": [8, 1024], "y": [0.1, 361.5]}
REPORT = acceptance("n03", "n01", failed={"n03"}, facts={"curves": [CURVE], "table": "size  GB/s\n8     0.1"})
PATHS = (
    *("/", "/nodes", "/nodes?select=rock=1", "/nodes/n03", "/nodes/n01", "/nodes/n99"),
    *(
        "/sweeps",
        "/sweeps/abcdefgh",
        "/sweeps/abcdefgh?why=n01",
        "/sweeps/runs",
        "/quarantine",
        "/events",
        "/events?kind=rock",
        "/acceptance",
        f"/acceptance/{acceptance_record(REPORT, received_at=0, sent_by='').id}",
    ),
)
NODES = tuple(f"n{number:02}" for number in range(16))
MOST_KEYS = 200


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(live, empty_database, tmp_path_factory):
    """A fleet of 16 nodes with a failed, a suspect, a degraded and a silent one, and two racks."""
    directory = tmp_path_factory.mktemp("data")
    shutil.copy(empty_database, directory)
    async with page_fleet(directory) as fleet:
        await fleet.join(*NODES)
        for _ in range(2):
            await fleet.report("n03", SLOW)
        await fleet.report("n07", LOST_GPU)
        odd = finding("gemm.odd", "540 TFLOP/s", severity=Severity.WARNING, action=Action.CHECK_APPLICATION)
        await fleet.report("n09", odd, verdict=Verdict.WARN)
        await fleet.leave("n11")
        await fleet.keep(bad_node("n03", "n01", "n02", "n04", inconclusive=("n05",), absent={"n11": "is lost"}))
        await fleet.accept(REPORT)
        await fleet.pass_time(120)
        await fleet.feed(SweepRequested("runs", SweepRequest(check="collective", nodes=("n01", "n02"))))
        yield fleet.url


@pytest_asyncio.fixture(loop_scope="module")
async def visit(browser, url):
    """Opens pages as `visit(**options)`, where options are those of a browser context."""
    contexts = []

    async def begin(at=url, **options):
        context = await browser.new_context(**options)
        contexts.append(context)
        return Visit(await context.new_page(), at)

    yield begin
    for context in contexts:
        await context.close()


async def test_a_long_name_does_not_widen_a_page(visit, live, empty_database, tmp_path):
    """A node may have a name of 253 characters; only what is in a frame of its own is scrolled sideways."""
    name = "n" * 200
    shutil.copy(empty_database, tmp_path)
    async with page_fleet(tmp_path) as fleet:
        await fleet.join(name, "n1")
        for _ in range(2):
            await fleet.report(name, SLOW)
        visited = await visit(fleet.url, viewport={"width": 1280, "height": 800})
        for path in ("/", "/nodes", f"/nodes/{name}", "/quarantine", "/events"):
            await visited.open(path)
            assert await visited.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


async def test_pages_load_without_an_error(visit):
    """No violation of the policy, no message on the console, and nothing from elsewhere."""
    visited = await visit()
    for path in PATHS:
        await visited.open(path)
        assert await visited.page.locator("h1").count() == 1
    assert (visited.wrong, visited.foreign) == ([], [])


async def test_the_style_sheet_applies(visit):
    """In light and dark."""
    seen = set()
    for scheme in ("light", "dark"):
        visited = await visit(color_scheme=scheme)
        await visited.open("/")
        seen.add(await visited.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(seen) == 2
    assert "rgba(0, 0, 0, 0)" not in seen


async def test_axe_finds_no_violation(visit):
    """On any page, in light and dark."""
    visited = await visit(bypass_csp=True)  # axe itself is an inline script
    for path in PATHS:
        await visited.open(path)
        assert await violations(visited.page) == [], path


async def test_everything_is_reached_by_keyboard(visit):
    """Every link and field of the page gets the focus in turn, and the focus is visible.

    With JavaScript, arrow keys move within a rack of the map instead.
    """
    visited = await visit(java_script_enabled=False)
    await visited.open("/")
    shown = "[...document.querySelectorAll('a[href], input')].filter(e => e.checkVisibility()).map(e => e.outerHTML)"
    wanted = set(await visited.page.evaluate(shown))
    reached = set()
    for _ in range(MOST_KEYS):
        await visited.page.keyboard.press("Tab")
        html, width = await visited.page.evaluate(
            "(e => [e.outerHTML, parseFloat(getComputedStyle(e).outlineWidth)])(document.activeElement)"
        )
        if html in wanted:
            assert width >= 1, html
            reached.add(html)
    assert wanted - reached == set()


async def test_a_cell_of_the_map_leads_to_its_node(visit):
    """With the keyboard, too."""
    visited = await visit()
    await visited.open("/")
    await visited.page.get_by_role("link", name="n07: suspect").focus()
    await visited.page.keyboard.press("Enter")
    await visited.page.wait_for_url("**/nodes/n07")
    assert await visited.page.locator("h1").inner_text() == "n07"


async def test_pages_work_below_a_prefix(visit, url):
    """From each page to the others, with style sheet and forms."""
    async with prefix_proxy(url, free_port()) as below:
        visited = await visit(at=below)
        await visited.open("/")
        await visited.page.get_by_role("link", name="n03: failed").click()
        await visited.page.wait_for_url(f"{below}/nodes/n03")
        await visited.page.get_by_role("link", name="r01").first.click()
        await visited.page.wait_for_url(f"{below}/nodes?select=block*")
        await visited.page.get_by_label("Find nodes").fill("health=FAILED")
        await visited.page.get_by_label("Find nodes").press("Enter")
        await visited.page.wait_for_url(f"{below}/nodes?select=health%3DFAILED")
        assert await visited.page.locator("tbody tr").count() == 1
        await visited.page.get_by_role("link", name="muster").click()
        await visited.page.wait_for_url(f"{below}/")
        assert (visited.wrong, visited.foreign) == ([], [])


async def test_pages_read_without_javascript(visit):
    """Everything that is wrong, and why."""
    visited = await visit(java_script_enabled=False)
    await visited.open("/")
    assert await visited.page.get_by_text("XID 79, GPU has fallen off the bus").first.is_visible()
    await visited.open("/nodes/n03")
    assert await visited.page.get_by_text("NVIDIA data sheet").is_visible()
    assert await visited.page.get_by_text("serial number 1654823000003").is_visible()


@pytest.mark.parametrize("width", [360, 1440])
async def test_no_page_is_wider_than_the_window(visit, width):
    """What is wider scrolls by itself."""
    visited = await visit(viewport={"width": width, "height": 800})
    for path in PATHS:
        await visited.open(path)
        assert await visited.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


async def test_forced_colours_and_print_keep_the_map(visit):
    """A cell has a colour of its own against the page in both."""
    for media in ({"forced_colors": "active"}, {"media": "print"}):
        visited = await visit()
        await visited.page.emulate_media(**media)
        await visited.open("/")
        fill, back = await visited.page.evaluate(
            "[getComputedStyle(document.querySelector('.solid.healthy')).fill,"
            " getComputedStyle(document.body).backgroundColor]"
        )
        assert fill not in (back, "none")
