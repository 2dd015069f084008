"""The pictures of the pages."""

import re
from pathlib import Path
from unittest.mock import MagicMock

import screenshots

from muster_coordinator.web.pages.page_routes import Pages

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
MOST_BYTES = 300_000


def test_there_is_a_picture_of_every_page():
    """Whoever adds a page sees it in the next pictures."""
    routes = [route for route in Pages(MagicMock()).routes() if route.method == "GET"]
    pages = {route.path for route in routes if not route.path.startswith("/static/")} | {"/login"}
    assert set(screenshots.PICTURES.values()) == pages


def test_the_readme_shows_its_pictures():
    """With a text for those who do not see them, and small enough to load."""
    shown = dict(re.findall(r"\[?!\[([^\]]+)\]\(docs/pictures/(\w+)\.png\)", README))
    assert sorted(shown.values()) == sorted(screenshots.IN_README)
    sizes = [(screenshots.DOCS / "pictures" / f"{name}.png").stat().st_size for name in screenshots.IN_README]
    assert max(sizes) < MOST_BYTES
