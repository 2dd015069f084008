"""What tests look for in the HTML of a page."""

import re
from html.parser import HTMLParser

from yarl import URL

MARKUP = "<b onmouseover=alert(1)>&amp;\"'</b></title></svg><script>alert(1)</script>"
WILD = f"{MARKUP}\u202e\x1b[2J"


class Links(HTMLParser):
    """The links of a page, the texts of its elements without those, and whether something in it could run."""

    def __init__(self, page):
        super().__init__()
        self.links, self.inline, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[name] for name in ("href", "src", "action") if name in given]
        self.inline += [name for name in given if name == "style" or name.startswith("on")]
        self.inline += [tag] * (tag == "style" or (tag == "script" and "src" not in given))

    def handle_data(self, data):
        self.text += data


async def require_links(pages, path, page):
    """Every link of the page at this path is relative and leads somewhere."""
    found = Links(page)
    assert found.inline == []
    for link in {link for link in found.links if not link.startswith("#")}:
        assert not re.match(r"/|[a-z]+:", link)
        async with pages.session.get(URL(pages.fleet.url + path).join(URL(link, encoded=True))) as response:
            assert response.status == 200, (path, link)


def require_text_only(page):
    """WILD stands in the page as text, and only so."""
    assert "<b onmouseover" not in page
    assert "<script>" not in page
    assert "&lt;b onmouseover" in page
    assert "&amp;amp;" in page
    assert not {"\u202e", "\x1b"} & set(page)
