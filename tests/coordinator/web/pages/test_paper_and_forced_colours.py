"""All pages on paper and in forced colours, in Chromium."""

import re

import pytest
from tests.coordinator.web.pages.test_browser import PATHS, url, visit  # noqa: F401 (fixtures)

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAPER_PX = 718
"""The width of A4 within the margins of Chromium, at 96 pixels to the inch."""

SYMBOLS = ("healthy", "silent", "degraded", "suspect", "failed")


async def on_paper(visit, **options):  # noqa: F811
    """A window as wide as the paper."""
    return await visit(viewport={"width": PAPER_PX, "height": 1000}, **options)


async def printing(visited, path):
    """The page as it is printed."""
    await visited.page.emulate_media(media="screen")
    await visited.open(path)
    await visited.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    await visited.page.emulate_media(media="print")
    return visited.page


async def test_every_page_prints_with_its_url_and_time(visit):  # noqa: F811
    """Which show on paper only. Nothing is wider than the paper, and nothing is folded."""
    visited = await on_paper(visit)
    for path in PATHS:
        page = await printing(visited, path)
        line = page.locator("#printed")
        assert re.fullmatch(rf"Printed from {re.escape(page.url)} at \S+Z", await line.inner_text()), path
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        cut = await page.evaluate(
            "[...document.querySelectorAll('.scroll, .matrix')].filter(e => e.scrollWidth > e.clientWidth + 1)"
            ".map(e => e.getAttribute('aria-label'))"
        )
        assert cut == [], path
        folded = await page.locator("details > :not(summary)").evaluate_all(
            "all => all.filter(e => !e.checkVisibility())"
        )
        assert folded == [], path
        await page.emulate_media(media="screen")
        assert not await line.is_visible()


async def test_a_dark_page_prints_in_black_on_white(visit):  # noqa: F811
    """Text, states and findings."""
    page = await printing(await on_paper(visit, color_scheme="dark"), "/nodes/n03")
    colours = await page.evaluate(
        "[document.body, document.querySelector('.finding .severity'), document.querySelector('h1')]"
        ".map(e => getComputedStyle(e).color)"
    )
    assert set(colours) == {"rgb(0, 0, 0)"}
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("media", [{"forced_colors": "active"}, {"media": "print"}])
async def test_states_differ_by_their_form(visit, media):  # noqa: F811
    """In black and white each condition has a picture of its own, and a mark shows on what it is drawn on."""
    visited = await visit()
    await visited.page.emulate_media(**media)
    await visited.open("/")
    pictures = await visited.page.evaluate(
        """names => names.map(name => [...document.getElementById(name).children].map(part => ({
          shape: part.tagName + (part.getAttribute("d") ?? part.getAttribute("width")),
          fill: getComputedStyle(part).fill, stroke: getComputedStyle(part).stroke,
        })))""",
        SYMBOLS,
    )
    assert len({tuple(part["shape"] for part in picture) for picture in pictures}) == len(SYMBOLS)
    for solid, *marks in pictures:
        assert solid["fill"] != "none"
        assert [mark for mark in marks if mark["stroke"] in ("none", solid["fill"])] == []


async def test_focus_shows_in_forced_colours(visit):  # noqa: F811
    """On links, fields and what can be scrolled."""
    for path in ("/", "/nodes/n03", "/sweeps/abcdefgh"):
        visited = await visit(forced_colors="active")
        await visited.open(path)
        for _ in range(12):
            await visited.page.keyboard.press("Tab")
            style, width = await visited.page.evaluate(
                "(s => [s.outlineStyle, parseFloat(s.outlineWidth)])(getComputedStyle(document.activeElement))"
            )
            assert style != "none"
            assert width >= 1


@pytest.mark.parametrize(("scheme", "paper"), [("light", (255, 255, 255)), ("dark", (22, 27, 34))])
async def test_the_matrix_of_a_sweep_fits_its_page(visit, scheme, paper):  # noqa: F811
    """Its paper is dark on a dark page."""
    visited = await visit(color_scheme=scheme)
    await visited.open("/sweeps/abcdefgh")
    colour = await visited.page.locator(".matrix img").evaluate(
        """async picture => {
          await picture.decode();
          const canvas = document.createElement("canvas");
          canvas.width = canvas.height = 4;
          const context = canvas.getContext("2d");
          context.drawImage(picture, 0, 0, 4, 4, 0, 0, 4, 4);
          return [...context.getImageData(1, 1, 1, 1).data].slice(0, 3);
        }"""
    )
    assert tuple(colour) == paper
