"""Style sheet, icon and scripts: read once, served with a digest in their URL, so that browsers keep them."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

_A_YEAR = "public, max-age=31536000, immutable"
"""For a URL with the digest: other content has another URL."""

_ASK_AGAIN = "no-cache"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is served; its name is its path below `static/`."""

    name: str
    content_type: str
    body: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:16]


@cache
def static_files() -> tuple[StaticFile, ...]:
    """All files of a type that pages load, by name; those of others are in `vendor/`, beside their licences."""
    static = resources.files("muster_coordinator.web.pages").joinpath("static")
    found = {file.name: file for file in static.iterdir()}
    found |= {f"vendor/{file.name}": file for file in found.pop("vendor").iterdir()}
    typed = ((name, _TYPES.get(f".{name.rpartition('.')[2]}")) for name in sorted(found))
    return tuple(StaticFile(name, type_, found[name].read_bytes()) for name, type_ in typed if type_ is not None)


@cache
def static_path(name: str) -> str:
    """The path of a file below `/`, with its digest."""
    file = next(file for file in static_files() if file.name == name)
    return f"static/{name}?v={file.digest}"


def static_routes() -> list[web.RouteDef]:
    """One route for each file; nothing else is served."""
    return [web.get(f"/static/{file.name}", _answer(file)) for file in static_files()]


def _answer(file: StaticFile) -> Handler:
    digest = file.digest

    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {
            hdrs.ETAG: f'"{digest}"',
            hdrs.CACHE_CONTROL: _A_YEAR if request.query.get("v") == digest else _ASK_AGAIN,
            "X-Content-Type-Options": "nosniff",
        }
        if any(tag.value in (digest, "*") for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        response = web.Response(body=file.body, content_type=file.content_type, charset="utf-8", headers=headers)
        response.enable_compression()
        return response

    return answer
