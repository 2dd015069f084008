"""The charts of a node's page in Chromium: what they draw, load and say."""

import re
import shutil
from datetime import UTC, datetime

import pytest
import pytest_asyncio
from tests.coordinator.web.pages.accessibility import violations
from tests.coordinator.web.pages.page_fleet import finding, page_fleet
from tests.coordinator.web.pages.page_html import MARKUP

from muster.check import Worse
from muster.model import Severity, Verdict
from muster.references import Reference
from muster_coordinator.model.events import ReferenceSet

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOUR = 3_600.0
RUNS = 30
HOSTILE = "<img/src=x/onerror=alert(1)>\"'"
"""A name that a metric may have."""

SLOW = finding(
    "gemm.slow",
    "tflops 548 TFLOP/s is below 556",
    device=1,
    severity=Severity.WARNING,
    evidence={"value": 548.0, "bound": 556.0, "source": "our acceptance test of May"},
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(live, empty_database, tmp_path_factory):
    """Three nodes that measured 30 times in 15 hours; GPU 1 of n1 became slow; n3 measured nothing for two days."""
    directory = tmp_path_factory.mktemp("data")
    shutil.copy(empty_database, directory)
    async with page_fleet(directory) as fleet:
        await fleet.join("n1", "n2", "n3", devices=2, uuid=MARKUP, compared={"tflops": Worse.LOWER})
        await fleet.pass_time(48 * HOUR)
        row = Reference(check="gemm", metric="tflops", fail_below=556.0, unit="TFLOP/s", source=f"May {MARKUP}")
        await fleet.feed(ReferenceSet(row))
        for number in range(RUNS):
            for node in ("n1", "n2"):
                values = [600.0 + number % 7, (548.0 if node == "n1" and number > 20 else 595.0) + number % 5]
                metrics = {"tflops": values, **{f"metric{place}": float(number * place) for place in range(12)}}
                slow = (SLOW,) if min(values) < 556 else ()
                await fleet.report(
                    node, *slow, verdict=Verdict.WARN if slow else None, metrics=metrics | {HOSTILE: 1.0}
                )
            await fleet.pass_time(HOUR / 2)
        yield fleet.url


@pytest_asyncio.fixture(loop_scope="module")
async def visit(browser, url):
    """Opens the page of a node as `visit(path, **options)`, where options are those of a browser context."""
    contexts = []

    async def begin(path="/nodes/n1", **options):
        context = await browser.new_context(viewport={"width": 1300, "height": 900}, **options)
        contexts.append(context)
        page = await context.new_page()
        page.wrong = []
        page.on("console", lambda message: page.wrong.append(message.text))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        await page.goto(url + path)
        return page

    yield begin
    for context in contexts:
        await context.close()


def chart(page, metric="tflops"):
    """The chart of a metric."""
    return page.locator(f'figure.chart[data-metric="{metric}"]')


async def drawn(page, metric="tflops"):
    """The chart of a metric in view, once it is drawn."""
    found = chart(page, metric)
    await found.scroll_into_view_if_needed()
    await found.locator("canvas").wait_for()
    return found


async def inked(figure):
    """By colour, the number of pixels of the canvas."""
    return await figure.locator("canvas").evaluate(
        """canvas => {
          const found = {}, {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          for (let at = 0; at < data.length; at += 4) {
            if (data[at + 3] < 255) continue;
            const colour = [data[at], data[at + 1], data[at + 2]].join(" ");
            found[colour] = (found[colour] ?? 0) + 1;
          }
          return found;
        }"""
    )


async def test_a_chart_draws_the_points_of_the_api(visit, url):
    """Each device has a line; the same values at the same times, nothing else."""
    page = await visit()
    figure = await drawn(page)
    data = await figure.locator(".plot").evaluate("plot => plot.uplot.data")
    since, until, step = await page.locator("#measurements").evaluate(
        "section => [section.dataset.since, section.dataset.until, section.dataset.step]"
    )
    query = {"metric": "tflops", "check": "gemm", "since": since, "until": until, "step_s": step, "limit": "1000"}
    answer = await page.request.get(f"{url}/api/v1/nodes/n1/history", params=query)
    points = [*reversed((await answer.json())["items"])]
    assert len(points) == RUNS
    times = [datetime.fromisoformat(point["at"]).astimezone(UTC).timestamp() for point in points]
    assert data == [times, [point["values"]["0"] for point in points], [point["values"]["1"] for point in points]]
    assert sum((await inked(figure)).values()) > 1_000
    assert page.wrong == []


async def test_a_line_has_a_gap_where_nothing_was_measured(visit):
    """If three points are missing, or three times as long as usually between two."""
    page = await visit()
    columns = await page.evaluate(
        """async () => {
          const charts = document.querySelector("script[src*=node_charts]").src;
          const {columnsOf} = await import(charts.replace("node_charts", "chart_data"));
          const at = [0, 600, 1200, 4800, 5400].map(seconds => new Date(seconds * 1000).toISOString());
          const points = at.map((at, place) => ({at, values: place === 4 ? {"1": 5} : {"0": place, "1": place}}));
          return columnsOf(points.reverse(), ["0", "1"], 300);
        }"""
    )
    assert columns == [
        [0, 600, 1200, 3000, 4800, 5400],
        [0, 1, 2, None, 3, None],
        [0, 1, 2, None, 3, 5],
    ]


async def test_lines_differ_by_more_than_their_colour(visit):
    """By their dashes in chart and legend, with the name of the device; the reference and the band are named, too."""
    page = await visit()
    figure = await drawn(page)
    dashes = await figure.locator(".plot").evaluate("plot => plot.uplot.series.slice(1).map(line => String(line.dash))")
    assert len(set(dashes)) == 2
    legend = figure.locator(".lines li")
    assert [text.strip() for text in await legend.all_inner_texts()] == ["GPU 0", "GPU 1", "Reference", "Fleet band"]
    samples = await legend.locator("line").evaluate_all(
        "lines => lines.map(line => line.getAttribute('stroke-dasharray'))"
    )
    assert len(set(samples[:3])) == 3


async def test_the_metric_with_the_finding_comes_first(visit):
    """It says so in words, as does the row of the device."""
    page = await visit()
    first = page.locator("figure.chart").first
    assert await first.get_attribute("data-metric") == "tflops"
    await first.locator("summary").click()
    assert await first.locator("figcaption").get_by_text("finding").count() == 1
    row = first.locator("tbody tr", has_text="finding")
    assert "GPU 1" in await row.inner_text()
    assert "at least" not in await first.locator("dl").inner_text()
    assert "fail below 556 TFLOP/s" in await first.locator("dl").inner_text()


async def test_only_charts_in_view_load(visit):
    """The others when they come into view."""
    page = await visit()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    await page.reload()
    await drawn(page)
    assert not [address for address in asked if "metric=metric11&" in address]
    await drawn(page, "metric11")
    assert len([address for address in asked if "metric=metric11&" in address]) == 1


async def test_the_range_stands_in_the_url(visit):
    """A link leads to another one, which the charts and the tables show."""
    page = await visit()
    await page.get_by_role("link", name="30 days").click()
    await page.wait_for_url("**/nodes/n1?range=30d#measurements")
    figure = await drawn(page)
    low, high = await figure.locator(".plot").evaluate("plot => [plot.uplot.scales.x.min, plot.uplot.scales.x.max]")
    assert high - low == 30 * 24 * HOUR
    assert await page.locator("#measurements [aria-current]").inner_text() == "30 days"
    assert (await page.goto(page.url.partition("?")[0] + "?range=1y")).status == 400


async def test_an_empty_chart_says_why(visit):
    """It asks for nothing."""
    page = await visit("/nodes/n3")
    text = await chart(page).inner_text()
    assert "Nothing was measured in this time. The last run was 3 d ago." in text
    await page.goto(page.url + "?range=7d")
    assert await (await drawn(page)).locator("canvas").count() == 1


async def test_a_chart_that_cannot_load_says_so_and_loads_again(visit):
    """In its place."""
    page = await visit("/")
    await page.route("**/history?*", lambda route: route.abort())
    await page.goto(page.url + "nodes/n1")
    await page.get_by_role("link", name="Everything that it has measured").click()
    figure = chart(page)
    await figure.scroll_into_view_if_needed()
    await figure.get_by_text("Not loaded: the coordinator cannot be reached").wait_for()
    await page.unroute("**/history?*")
    await figure.get_by_role("button", name="Try again").click()
    await figure.locator("canvas").wait_for()
    assert await figure.get_by_text("Not loaded").count() == 0


async def test_names_with_markup_stay_text(visit):
    """Of metrics and devices, and in sources."""
    page = await visit()
    assert await (await drawn(page)).locator(".lines li").first.get_attribute("title") == f"{MARKUP}-n1-0000"
    hostile = page.locator("figure.chart").last
    await hostile.scroll_into_view_if_needed()
    await hostile.locator("canvas").wait_for()
    assert await hostile.get_attribute("data-metric") == HOSTILE
    assert HOSTILE in await hostile.locator("figcaption").inner_text()
    assert await page.locator("#measurements img, #measurements script").count() == 0
    assert page.wrong == []


async def test_charts_keep_to_the_policy(visit):
    """The scripts violate it nowhere, while charts are drawn, moved over and drawn again."""
    page = await visit("/")
    await page.add_init_script(
        "window.violations = []; addEventListener('securitypolicyviolation', e => violations.push(e.violatedDirective))"
    )
    await page.goto(page.url + "nodes/n1")
    figure = await drawn(page)
    await figure.locator(".u-over").hover()
    await figure.locator(".lines .value").first.filter(has_text=re.compile(r"\d")).wait_for()
    await page.set_viewport_size({"width": 700, "height": 900})
    await page.emulate_media(color_scheme="dark")
    assert await page.evaluate("violations") == []


async def test_a_replaced_section_is_started_again(visit):
    """Alone or with the whole content; the charts of the old one are given up."""
    page = await visit()
    await drawn(page)
    for replaced in ("measurements", "main"):
        await page.evaluate(
            """async id => {
              const page = await (await fetch(location.href)).text();
              const made = new DOMParser().parseFromString(page, "text/html").getElementById(id);
              document.getElementById(id).replaceWith(document.adoptNode(made));
            }""",
            replaced,
        )
        assert await (await drawn(page)).locator("canvas").count() == 1
    assert page.wrong == []


async def test_charts_are_renewed(visit):
    """Every five minutes, unless a person reads the numbers of one."""
    page = await visit("/")
    await page.clock.install()
    await page.goto(page.url + "nodes/n1")
    await (await drawn(page)).evaluate("figure => figure.dataset.old = 'true'")
    await page.clock.run_for(310_000)
    await page.locator('figure[data-metric="tflops"]:not([data-old]) canvas').wait_for()
    assert await page.locator("figure[data-old]").count() == 0


async def test_the_page_has_all_numbers_without_javascript(visit):
    """Of each metric: latest, median, least and most, the reference with its source, and the fleet."""
    page = await visit(java_script_enabled=False)
    text = await chart(page).inner_text()
    for part in (
        "552 TFLOP/s",
        "596 TFLOP/s",
        "548 TFLOP/s",
        "599 TFLOP/s",
        "fail below 556",
        f"May {MARKUP}",
        "of 3 nodes",
    ):
        assert part in text


async def test_axe_finds_no_violation_in_charts(visit):
    """When they are drawn, and with open tables, in light and dark."""
    page = await visit(bypass_csp=True)
    await (await drawn(page)).locator("summary").click()
    assert await violations(page) == []


async def test_charts_show_in_forced_colours(visit):
    """Lines are as dark as text, whatever their own colour."""
    page = await visit(forced_colors="active")
    colours = await inked(await drawn(page))
    text = (await page.evaluate("getComputedStyle(document.body).color")).removeprefix("rgb(").rstrip(")")
    assert colours.get(text.replace(",", ""), 0) > 200


async def test_charts_are_black_on_paper(visit):
    """From a dark page, too, with all their numbers."""
    page = await visit(color_scheme="dark")
    figure = await drawn(page)
    assert "0 0 0" not in await inked(figure)
    await page.evaluate("dispatchEvent(new Event('beforeprint'))")
    await page.emulate_media(media="print")
    assert (await inked(figure))["0 0 0"] > 200
    assert await figure.get_by_text("fail below 556 TFLOP/s").is_visible()
    printed = await page.locator("#printed").inner_text()
    assert printed.startswith(f"Printed from {page.url} at 20")
    await page.emulate_media(media="screen")
    assert not await page.locator("#printed").is_visible()
