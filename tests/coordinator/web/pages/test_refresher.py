"""When a page asks for itself again, and when it shows the answer, with answers that come in a chosen order."""

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.coordinator.web.pages.made_up_page import made_up_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORLD = """async () => {
    const { Refresher } = await import("/static/refresher.js");
    const made = text => `<main id="main">
        <section aria-label="form"><p>${text}</p><input><button>Send</button></section>
        <section aria-label="rest"><p>${text}</p></section></main>`;
    document.body.innerHTML = made("old");
    const refresher = new Refresher(() => "/", () => {}, 10);
    globalThis.request = (...answers) => {
        globalThis.fetch = async () => {
            const answer = answers.shift();
            if (answer === "away") throw new TypeError("no network");
            return { ok: answer !== "busy", status: answer === "busy" ? 503 : 200, text: async () => made(answer) };
        };
        refresher.request();
    };
}"""


@pytest_asyncio.fixture(loop_scope="module")
async def page(live, browser):
    """A page of two sections; `request(…)` asks for it, and gets these answers one after the other."""
    async with made_up_page(browser, "refresher.js", "sections.js") as page:
        await page.evaluate(WORLD)
        yield page


async def test_a_request_that_fails_is_sent_again(page):
    """Perhaps nothing changes afterwards that would ask for the page."""
    await page.evaluate("request('away', 'busy', 'new')")
    await expect(page.locator("p")).to_have_text(["new", "new"])


async def test_what_a_person_uses_is_replaced_afterwards(page):
    """What is typed stays also when the button has the focus; nothing asks for the page again."""
    await page.locator("input").fill("because")
    await page.locator("button").focus()
    await page.evaluate("request('new')")
    await expect(page.locator("p")).to_have_text(["old", "new"])
    await page.locator("input").fill("")
    await page.locator("button").focus()
    await expect(page.locator("p")).to_have_text(["new", "new"])


async def test_the_later_answer_is_shown(page):
    """While a person uses a section, two answers have come."""
    await page.locator("input").fill("because")
    await page.evaluate("request('new')")
    await expect(page.locator("p")).to_have_text(["old", "new"])
    await page.evaluate("request('newer')")
    await expect(page.locator("p")).to_have_text(["old", "newer"])
    await page.locator("input").fill("")
    await page.locator("button").focus()
    await expect(page.locator("p").first).not_to_have_text("old")
    assert await page.locator("p").all_inner_texts() == ["newer", "newer"]
