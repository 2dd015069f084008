"""The answer with a page: its headers, and where its relative links begin."""

from http import HTTPStatus

from aiohttp import web

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""Pages load nothing from other hosts, and nothing that stands in them runs: text of nodes can do no harm."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

HTML = "text/html"

ROOT = "./"
"""The relative way from `/` to itself."""

_COMPRESSED_IN_A_THREAD = 16 << 10
"""Pages of more bytes are compressed in a thread."""


def page_response(html: str, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> web.Response:
    """The answer with this page. Nobody keeps it: it shows the fleet as it is now."""
    response = web.Response(
        text=html,
        status=status,
        content_type=HTML,
        headers={**HEADERS, "Cache-Control": "no-store", **headers},
        zlib_executor_size=_COMPRESSED_IN_A_THREAD,
    )
    response.enable_compression()
    return response


def root_of(request: web.Request) -> str:
    """The relative way from this page to `/`, so that links work below any prefix of a proxy."""
    return "../" * (request.rel_url.raw_path.count("/") - 1) or ROOT


def accepts_pages(request: web.Request) -> bool:
    """Whether the client is a browser that shows what it gets: it names HTML as what it accepts."""
    return HTML in request.headers.get("Accept", "")
