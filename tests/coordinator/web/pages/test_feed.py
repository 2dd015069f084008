"""What the tabs of a browser get of the fleet, with answers of the coordinator that come in a chosen order."""

import pytest
import pytest_asyncio
from tests.coordinator.web.pages.made_up_page import made_up_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORLD = """async () => {
    const { Feed } = await import("/static/feed.js");
    globalThis.answers = [];
    globalThis.fetch = () => new Promise(resolve => answers.push(version =>
        resolve({ ok: true, json: async () => ({ snapshot: true, epoch: 1, version }) })));
    globalThis.streams = [];
    globalThis.EventSource = class extends EventTarget {
        static OPEN = 1;
        static CLOSED = 2;
        readyState = 1;
        constructor() { super(); streams.push(this); }
        close() { this.readyState = 2; }
        say(kind, readyState) { this.readyState = readyState; this.dispatchEvent(new Event(kind)); }
    };
    globalThis.feed = new Feed();
    globalThis.tab = () => {
        const versions = [], stale = [], port = {
            postMessage: ({ snapshot, change, lostAt }) => snapshot || change
                ? versions.push((snapshot ?? change).version)
                : stale.push(lostAt !== null),
        };
        feed.add(port);
        return { versions, stale, say: data => port.onmessage({ data }) };
    };
    globalThis.change = version =>
        streams[0].dispatchEvent(new MessageEvent("change", { data: JSON.stringify({ version }) }));
    globalThis.settled = () => new Promise(resolve => setTimeout(resolve));
}"""


@pytest_asyncio.fixture(loop_scope="module")
async def page(live, browser):
    """A page that has only the feed; `answers[n](version)` answers its request n for a snapshot."""
    async with made_up_page(browser, "feed.js") as page:
        await page.evaluate(WORLD)
        yield page


async def test_a_tab_that_is_hidden_and_shown_again_misses_no_change(page):
    """The change waits for the first snapshot that the tab asked for, which then comes and does not have it."""
    seen = await page.evaluate("""async () => {
        const other = tab(), hidden = tab();
        other.say("begin");
        answers[0](4);
        await settled();
        hidden.say("begin");
        change(5);
        hidden.say("end");
        hidden.say("begin");
        answers[1](4);
        await settled();
        answers[2](5);
        await settled();
        change(6);
        return [other.versions, hidden.versions];
    }""")
    assert seen == [[4, 5, 6], [5, 6]]


async def test_a_tab_that_is_hidden_before_its_snapshot_comes_opens_no_stream(page):
    """Nobody would close the stream, and it would take the place of a viewer."""
    opened = await page.evaluate("""async () => {
        const hidden = tab();
        hidden.say("begin");
        hidden.say("end");
        answers[0](4);
        await settled();
        return streams.length;
    }""")
    assert opened == 0


async def test_another_tab_does_not_make_a_tab_up_to_date(page):
    """The coordinator answers its request for a snapshot while the stream of changes is still lost."""
    seen = await page.evaluate("""async () => {
        const first = tab(), other = tab();
        first.say("begin");
        answers[0](4);
        await settled();
        streams[0].say("error", 0);
        other.say("begin");
        answers[1](5);
        await settled();
        const before = [...first.stale];
        streams[0].say("open", 1);
        return [before, first.stale, other.stale];
    }""")
    assert seen == [[False, True], [False, True, False], [True, False]]


async def test_a_tab_that_opens_a_new_stream_brings_the_others_up_to_date(page):
    """The new stream begins after its snapshot: they would miss what changed before, and not know it."""
    seen = await page.evaluate("""async () => {
        const first = tab(), other = tab();
        first.say("begin");
        answers[0](4);
        await settled();
        streams[0].say("error", 2);
        other.say("begin");
        answers[1](6);
        await settled();
        return [first.versions, other.versions, streams.length];
    }""")
    assert seen == [[4, 6], [6], 2]
