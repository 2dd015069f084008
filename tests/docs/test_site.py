"""`make site` builds the documentation without a warning, and the site needs no network and has no broken link."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from generator.site import arrows, navigation

ROOT = Path(__file__).parents[2]
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "object": "data", "source": "src"}
"""Attributes by which a page makes a browser load something."""


class Page(HTMLParser):
    """What a page loads, where it links to, and the places in it that a link can name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        if tag == "a":
            self.links.append(values.get("href") or "")
        if tag in LOADING:
            self.loaded.append(values.get(LOADING[tag]) or "")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A directory with the site in `html`, built by the command of `make site`."""
    place: Path = tmp_path_factory.mktemp("site")
    flags = ["--fail-on-warning", "--nitpicky", "--keep-going", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *flags, "-c", "docs", "-d", place / "doctrees", ".", place / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def site(place) -> dict[Path, Page]:
    """The pages of the site by their paths."""
    return {path: Page(path) for path in (place / "html").rglob("*.html")}


def test_every_document_is_a_page(place, site):
    """The site has all documents of the repository, at the same paths."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    pages = {place / "html" / path.relative_to(ROOT).with_suffix(".html") for path in documents}
    assert pages <= site.keys()


def test_the_site_needs_no_network(place, site):
    """No page and no style sheet loads anything from another host."""
    remote = [(path.name, url) for path, page in site.items() for url in page.loaded if urlsplit(url).netloc]
    assert remote == []
    sheets = [path.read_text(encoding="utf-8") for path in (place / "html").rglob("*.css")]
    assert sheets
    assert not [sheet for sheet in sheets if "url(http" in sheet or "@import" in sheet]


def test_every_link_leads_to_a_page_and_a_place_in_it(site):
    """A link without a host names a file of the site and, behind `#`, a place in it."""
    links = [(path, url) for path, page in site.items() for url in page.links]
    assert [(path.name, url) for path, url in links if not leads_somewhere(site, path, url)] == []


def leads_somewhere(site: dict[Path, Page], path: Path, url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if parts.fragment and target in site:
        return unquote(parts.fragment) in site[target].anchors
    return target.is_file()


def test_navigation_has_the_links_of_the_front_page_in_their_order():
    """Headings that are no kind of page, and links to the network, are left out."""
    kinds = ("Tutorials", "How-to guides", "Reference", "Explanation", "The project")
    sections = (f"## {kind}\n\n[one](b.md) [two](a.md) [one](b.md) [no](https://x.org/y.md)\n\n" for kind in kinds)
    tree = navigation("# Title\n\n## Choose\n\n[path](c.md)\n\n" + "".join(sections))
    assert tree.count("```{toctree}\n:caption: Tutorials\n:hidden:\n\nb\na\n```\n") == 1
    assert "c" not in tree.splitlines()


def test_a_state_diagram_becomes_arrows():
    """The start has a name, and an arrow may have no label."""
    diagram = "stateDiagram-v2\n    [*] --> GOOD\n    GOOD --> BAD: FAIL, BROKEN"
    assert arrows(diagram) == [("(start)", "GOOD", ""), ("GOOD", "BAD", "FAIL, BROKEN")]


@pytest.mark.parametrize("diagram", ["flowchart LR\n    a --> b", "stateDiagram-v2\n    state fork <<fork>>"])
def test_a_diagram_that_the_site_cannot_show_is_refused(diagram):
    """Nothing of a diagram is dropped silently."""
    with pytest.raises(ValueError, match="SVG"):
        arrows(diagram)
