"""How quickly the pages of a large fleet appear in a browser and follow it, and what many viewers cost.

Claims, with 10,000 nodes: the first paint of `/` takes less than a second and less than 100 KB; all scripts together
take less than 60 KB; the table of nodes filters and sorts within 100 ms (p95); with 50 viewers, a change of a node is
on the page within a second (p95), for less than 5 % of a core and 50 MB; when 1,000 nodes break at once, the page is
right within 3 s, and no task of the browser takes more than 200 ms.

Method: most nodes have sent their inventory and a run of each check, and only beat since; `--live` of them are
simulated agents as in `fleet_scale`, and these break. Broker and coordinator are real, and the browser is Debian's
Chromium, in which muster's own scripts follow the fleet. The other viewers take a snapshot and then read the stream of
changes without looking at it. A change is on the page when the document has it; the next frame shows it. The longest
task is that since the many nodes broke: while a page loads, its tasks are part of the first paint.

Limits: browser, viewers, agents and coordinator share this host's cores. The measurements of the nodes are simulated.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
from aiohttp import ClientSession, ClientTimeout, TCPConnector
from benchmarks.figures import Figure, arguments, median_of, percentile, publish
from benchmarks.fleet import Fleet, mosquitto
from benchmarks.node_list import join, knows
from benchmarks.quiet_nodes import beating
from benchmarks.scale_agents import node_name
from benchmarks.scale_parts import MIB, Crowd, until
from benchmarks.scale_template import recorded
from benchmarks.view_table import table_figures
from playwright.async_api import Browser, Page, Request, async_playwright

CHROMIUM = "/usr/bin/chromium"
FAULT = "nvml.ecc_uncorrected"
JOINED_WITHIN_S, FOLLOWED_WITHIN_S = 300.0, 60.0

WATCH = """
window.tasks = [];
new PerformanceObserver(list => tasks.push(...list.getEntries().map(task => task.duration)))
  .observe({ type: "longtask", buffered: true });
"""

PAINTED = """() => new Promise(done => new PerformanceObserver(list => {
  const [paint] = list.getEntriesByName("first-contentful-paint");
  if (paint) done(paint.startTime / 1000);
}).observe({ type: "paint", buffered: true }))"""
"""When the browser has painted first, in seconds since it began to load; a page may be loaded before."""

APPEARED = """([node, ms]) => new Promise((done, fail) => {
  let cell = null;
  const look = () => {
    if (!cell?.isConnected) {
      cell = [...document.querySelectorAll("svg.rack a")].find(each => each.textContent.startsWith(node + ":"));
    }
    if (cell && /failed|suspect/.test(cell.textContent)) done(Date.now());
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  setTimeout(() => fail(new Error(cell?.textContent)), ms);
  look();
})"""
"""When the cell of a node shows that something is wrong with it, in milliseconds since 1970."""

ALL_APPEARED = """([nodes, ms]) => new Promise((done, fail) => {
  const missing = new Set(nodes);
  let cells = new Map();
  const look = () => {
    if (!cells.values().next().value?.isConnected) {
      cells = new Map([...document.querySelectorAll("svg.rack a")].map(each => [each.textContent.split(":")[0], each]));
    }
    for (const node of missing) if (/failed|suspect/.test(cells.get(node)?.textContent)) missing.delete(node);
    if (!missing.size) done(Date.now());
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  setTimeout(() => fail(new Error(`${missing.size} nodes have not appeared`)), ms);
  look();
})"""
"""When the cells of all of these nodes have shown that something is wrong. They are well again after some runs."""


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of one fleet."""
    template = await recorded(directory)
    names = [f"node-{number:05}" for number in range(options.nodes - options.live)]
    crowd = Crowd()
    async with (
        mosquitto(directory) as broker,
        Fleet(directory, broker) as fleet,
        crowd.running(options.live, 1, broker, directory / "template.json"),
        async_playwright() as playwright,
    ):
        await join(fleet, broker, template, names)
        await until(lambda: knows(fleet, options.nodes), JOINED_WITHIN_S)
        async with beating(broker, template, names):
            await asyncio.sleep(options.settle_s)
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            figures = await first_paints(browser, fleet.url, options.paints)
            figures += await table(browser, fleet.url, options.rounds)
            figures += await followed(browser, fleet, crowd, options)
            await browser.close()
    return figures


async def first_paints(browser: Browser, url: str, times: int) -> list[Figure]:
    """How long `/` takes until the browser paints it, in new sessions, and how many bytes it and its scripts take."""
    paints, sizes = [], {}
    for _ in range(times):
        context = await browser.new_context()
        page = await context.new_page()
        seen: list[Request] = []

        def note(request: Request, seen: list[Request] = seen) -> None:
            seen.append(request)

        page.on("requestfinished", note)
        await page.goto(f"{url}/", wait_until="load")
        paints.append(await page.evaluate(PAINTED))
        sizes = {request.url: (await request.sizes())["responseBodySize"] for request in seen}
        await context.close()
    scripts = sum(size for address, size in sizes.items() if ".js" in address)
    return [
        median_of("first paint of /", "s", paints, ("<=", 1.0)),
        Figure(what="bytes of /, compressed", unit="KB", value=sizes[f"{url}/"] / 1e3, target=("<=", 100.0)),
        Figure(what="bytes of its scripts, compressed", unit="KB", value=scripts / 1e3, target=("<=", 60.0)),
    ]


async def table(browser: Browser, url: str, rounds: int) -> list[Figure]:
    """How long the table of nodes takes to filter and to sort."""
    page = await browser.new_page()
    await page.goto(f"{url}/nodes")
    await page.get_by_role("grid").wait_for(state="attached")
    figures = await table_figures(page, rounds)
    await page.close()
    return figures


async def followed(browser: Browser, fleet: Fleet, crowd: Crowd, options: argparse.Namespace) -> list[Figure]:
    """How long changes take to the page with many viewers, and what these cost."""
    coordinator = psutil.Process(fleet.parts["coordinator"].process.pid)
    page = await followed_page(browser, fleet.url)
    singles = options.changes
    alone_s, alone = await changes(page, crowd, coordinator, range(singles))
    before = coordinator.memory_info().rss
    async with viewers(fleet.url, options.viewers):
        await asyncio.sleep(options.idle_s)
        with_all_s, shared = await changes(page, crowd, coordinator, range(singles, 2 * singles))
        grown = coordinator.memory_info().rss - before
        broken, broken_s = await many(page, crowd, range(2 * singles, options.live))
        tasks: list[float] = await page.evaluate("tasks")
    p95 = percentile(shared, 95)
    many_viewers = f"{options.viewers} viewers"
    return [
        median_of("a change to the page, one viewer", "s", alone),
        Figure(what=f"a change to the page, {many_viewers}, p95", unit="s", value=p95, target=("<=", 1.0)),
        Figure(what="share of a core for them", unit="%", value=100 * (with_all_s - alone_s), target=("<=", 5.0)),
        Figure(what="memory for them", unit="MB", value=grown / MIB, target=("<=", 50.0)),
        Figure(what=f"{broken} nodes break at once, all on the page", unit="s", value=broken_s, target=("<=", 3.0)),
        Figure(what="longest task of the browser", unit="s", value=max(tasks, default=0) / 1e3, target=("<=", 0.2)),
    ]


async def followed_page(browser: Browser, url: str) -> Page:
    """The page `/` that follows the fleet."""
    page = await browser.new_page()
    await page.add_init_script(WATCH)
    async with page.expect_response(lambda response: "snapshot" in response.url or response.ok):
        await page.goto(f"{url}/")
    await page.wait_for_timeout(3_000)
    return page


async def changes(page: Page, crowd: Crowd, coordinator: psutil.Process, numbers: range) -> tuple[float, list[float]]:
    """The coordinator's share of a core while nodes break one after the other, and how long each takes to the page."""
    delays = []
    began, used = time.monotonic(), sum(coordinator.cpu_times()[:2])
    for number in numbers:
        appeared = asyncio.create_task(page.evaluate(APPEARED, [node_name(number), FOLLOWED_WITHIN_S * 1e3]))
        await asyncio.sleep(1.0)
        failed_at = await crowd.fail(number, FAULT)
        delays.append(await appeared / 1e3 - failed_at)
    return (sum(coordinator.cpu_times()[:2]) - used) / (time.monotonic() - began), delays


async def many(page: Page, crowd: Crowd, numbers: range) -> tuple[int, float]:
    """How many nodes break at once, and how long it takes until the page has shown all of them."""
    nodes = [node_name(number) for number in numbers]
    appeared = asyncio.create_task(page.evaluate(ALL_APPEARED, [nodes, FOLLOWED_WITHIN_S * 1e3]))
    await asyncio.sleep(1.0)
    await page.evaluate("tasks.length = 0")
    failed_at = await crowd.fail_together(numbers, FAULT)
    return len(numbers), await appeared / 1e3 - failed_at


@asynccontextmanager
async def viewers(url: str, number: int) -> AsyncIterator[None]:
    """So many viewers that take a snapshot and read what changes."""
    connector, timeout = TCPConnector(limit=0), ClientTimeout(total=None)
    async with ClientSession(connector=connector, timeout=timeout) as session, asyncio.TaskGroup() as tasks:
        views = [tasks.create_task(view(session, url)) for _ in range(number)]
        yield
        for each in views:
            each.cancel()


async def view(session: ClientSession, url: str) -> None:
    """One of them."""
    async with session.get(f"{url}/api/v1/snapshot") as response:
        snapshot = await response.json()
    since = f"{snapshot['epoch']}-{snapshot['version']}"
    async with session.get(f"{url}/api/v1/changes", params={"since": since}) as stream:
        async for _ in stream.content.iter_any():
            pass


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=10_000, help="size of the fleet")
    parser.add_argument("--live", type=int, default=1_060, help="nodes with a simulated agent; all of them break")
    parser.add_argument("--changes", type=int, default=30, help="nodes that break one after the other, twice")
    parser.add_argument("--viewers", type=int, default=50, help="viewers of the stream of changes")
    parser.add_argument("--paints", type=int, default=7, help="how often / is loaded")
    parser.add_argument("--rounds", type=int, default=5, help="how often the table is filtered and sorted")
    parser.add_argument("--idle-s", type=float, default=10.0, help="seconds in which the other viewers connect")
    parser.add_argument("--settle-s", type=float, default=30.0, help="seconds before anything is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        publish(options, asyncio.run(measure(options, Path(directory))))


if __name__ == "__main__":
    main()
