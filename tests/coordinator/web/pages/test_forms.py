"""Logging in, and the forms of operators, in Chromium without JavaScript."""

import shutil

import pytest
import pytest_asyncio
from tests.coordinator.web.pages.accessibility import violations
from tests.coordinator.web.pages.page_fleet import LOST_GPU, page_fleet

from muster_coordinator.web.guard import Access
from muster_coordinator.web.sessions import Right

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPERATE, READ = "operator-token", "reader-token"
MARKUP = "<img src=x onerror=alert(1)> a fan"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(live, empty_database, tmp_path_factory):
    """Four nodes, one of them without a GPU, behind two tokens."""
    directory = tmp_path_factory.mktemp("data")
    shutil.copy(empty_database, directory)
    access = Access(OPERATE, Right.PROBE, "of http.token_file", READ)
    async with page_fleet(directory, access=access) as made:
        await made.join("n01", "n02", "n03", "n04")
        await made.report("n02", LOST_GPU)
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser, fleet):
    """A page without JavaScript, and without a session."""
    context = await browser.new_context(base_url=fleet.url, java_script_enabled=False)
    yield await context.new_page()
    await context.close()


async def log_in(page, token, name=""):
    """Fills in the form and sends it."""
    await page.get_by_label("Token").fill(token)
    await page.get_by_label("Your name").fill(name)
    await page.get_by_role("button", name="Log in").click()


async def test_an_operator_holds_and_releases_a_node(page, fleet):
    """From the page that the login has interrupted; who did it is the one who has logged in."""
    await page.goto("/nodes/n01")
    await log_in(page, OPERATE, "ann@example.org")
    assert page.url == f"{fleet.url}/nodes/n01"
    assert "ann@example.org" in await page.locator("header").inner_text()
    hold = page.locator("form[action$='/hold']")
    assert await hold.get_by_label("Your name").count() == 0
    await hold.get_by_label("Reason").fill(MARKUP)
    await hold.get_by_role("button").click()
    assert page.url == f"{fleet.url}/nodes/n01?done=held"
    text = await page.locator("main").inner_text()
    assert "stays as it is" in text
    assert MARKUP in text
    held = fleet.shell.pipeline.fleet.case("n01").hold
    assert (held.by, held.reason) == ("ann@example.org", MARKUP)
    release = page.locator("form[action$='/release']")
    await release.get_by_label("Reason").fill("replaced")
    await release.get_by_role("button").click()
    assert fleet.shell.pipeline.fleet.case("n01").hold is None
    await page.get_by_role("button", name="Log out").click()
    assert page.url == f"{fleet.url}/login"
    await page.goto("/nodes/n01")
    assert page.url.startswith(f"{fleet.url}/login?next=")


async def test_who_does_not_give_a_name_is_asked_for_it(page, fleet):
    """By each form. A wrong value is explained, and nothing changes."""
    await page.goto("/nodes/n01")
    await log_in(page, OPERATE)
    hold = page.locator("form[action$='/hold']")
    await hold.get_by_label("Your name").fill(" ")
    await hold.get_by_label("Reason").fill("a fan")
    await hold.get_by_role("button").click()
    assert "field 'by'" in await page.locator("main").inner_text()
    await page.get_by_role("link", name="Back to the form").click()
    assert page.url == f"{fleet.url}/nodes/n01"
    assert fleet.shell.pipeline.fleet.case("n01").hold is None


async def test_an_operator_plans_and_starts_a_sweep(page, fleet):
    """The plan starts nothing; the sweep knows who has started it."""
    await page.goto("/nodes/n01")
    await log_in(page, OPERATE, "eve")
    await page.get_by_role("link", name="Start a sweep with it").click()
    await page.get_by_label("Check").fill("collective")
    await page.get_by_label("Strategy").select_option("pairs")
    await page.get_by_role("button", name="Plan it").click()
    assert "would sweep 4 nodes with collective, strategy pairs" in await page.locator("pre").inner_text()
    assert fleet.shell.pipeline.fleet.sweeps() == []
    await page.get_by_role("button", name="Start this sweep").click()
    (sweep,) = fleet.shell.pipeline.fleet.sweeps()
    assert page.url == f"{fleet.url}/sweeps/{sweep.id}"
    assert (sweep.requested_by, sweep.strategy) == ("eve", "pairs")
    assert "request by eve" in await page.locator("main").inner_text()
    await page.get_by_text("End this sweep now").click()
    await page.get_by_role("button", name="End the sweep").click()
    assert "aborted by eve" in await page.locator("main").inner_text()
    assert fleet.shell.pipeline.fleet.sweeps() == []


@pytest.mark.parametrize("button", ["Plan it", "Start it now"])
async def test_a_refused_sweep_can_be_mended(page, fleet, button):
    """The form says what is wrong and keeps what was typed; so does the way back from a plan."""
    await page.goto("/sweeps?select=name%3Dn0%5B1-3%5D&max_parallel=2")
    await log_in(page, OPERATE, "eve")
    await page.get_by_label("Check").fill("collectiv")
    await page.get_by_label("Strategy").select_option("pairs")
    await page.get_by_role("button", name=button).click()
    assert "did you mean 'collective'" in await page.get_by_role("alert").inner_text()
    assert await typed(page) == ["collectiv", "name=n0[1-3]", "pairs", "2"]
    assert "collective" in await page.locator("datalist option").all_inner_texts()
    assert fleet.shell.pipeline.fleet.sweeps() == []
    await page.get_by_label("Check").fill("collective")
    await page.get_by_role("button", name="Plan it").click()
    await page.get_by_role("link", name="Change it").click()
    assert await typed(page) == ["collective", "name=n0[1-3]", "pairs", "2"]


async def typed(page):
    """What the fields of a sweep say."""
    return [await page.locator(f"#{field}").input_value() for field in ("check", "nodes", "strategy", "parallel")]


async def test_an_operator_runs_a_check(page, fleet):
    """The story of the node says who has asked for it."""
    await page.goto("/nodes/n02")
    await log_in(page, OPERATE, "eve")
    await page.get_by_text("Run a check now").click()
    await page.get_by_role("button", name="Run", exact=True).click()
    assert page.url == f"{fleet.url}/nodes/n02?done=run"
    assert "by eve" in await page.locator("section[aria-labelledby=story]").inner_text()


async def test_a_reader_sees_no_forms(page):
    """But who has logged in, and as what."""
    await page.goto("/quarantine")
    await log_in(page, READ)
    assert "read" in await page.locator("header").inner_text()
    for path in ("/quarantine", "/nodes/n01", "/nodes/n02", "/sweeps"):
        await page.goto(path)
        assert await page.locator("main form[method=post]").count() == 0, path


async def test_a_wrong_token_is_explained(page, fleet):
    """At the form, which keeps what else was typed."""
    await page.goto("/events?node=n01")
    await log_in(page, "wrong", "ann")
    assert "the token is wrong" in await page.get_by_role("alert").inner_text()
    assert await page.get_by_label("Your name").input_value() == "ann"
    await log_in(page, READ, "ann")
    assert page.url == f"{fleet.url}/events?node=n01"


@pytest.mark.parametrize("next", ["//evil.example", "https://evil.example", "../../x", "\\\\evil.example"])
async def test_the_login_never_leads_to_another_origin(page, fleet, next):
    """Whatever a link to it says."""
    await page.goto(f"/login?next={next}")
    await log_in(page, READ)
    assert page.url.startswith(f"{fleet.url}/")


async def test_forms_are_accessible(browser, fleet):
    """In light and dark."""
    context = await browser.new_context(base_url=fleet.url)
    visited = await context.new_page()
    await visited.goto("/login?next=nodes/n01")
    found = [await violations(visited)]
    await log_in(visited, OPERATE)
    for path in ("/nodes/n01", "/sweeps"):
        await visited.goto(path)
        found.append(await violations(visited))
    await context.close()
    assert found == [[], [], []]
