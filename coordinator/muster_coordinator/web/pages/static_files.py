"""Style sheet, icon and scripts: read once, served with a digest in their URL, so that browsers keep them.

Scripts name the scripts that they load, and these names get the digests, too. So a page needs no request for what the
browser has, and one of a new version never loads a script of the old one.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

_A_YEAR = "public, max-age=31536000, immutable"
"""For a URL with the digest: other content has another URL."""

_ASK_AGAIN = "no-cache"

_LOADED = re.compile(rb'(?<=")(?:\./)?([a-z_]+\.js)(?=")')
"""Another script in one of ours: `from "./feed.js"`."""


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
    vendored = [f"vendor/{file.name}" for file in _static().joinpath("vendor").iterdir()]
    names = sorted([*(file.name for file in _static().iterdir()), *vendored])
    return tuple(_file(name) for name in names if _type(name) is not None)


@cache
def static_path(name: str) -> str:
    """The path of a file below `/`, with its digest."""
    return f"static/{name}?v={_file(name).digest}"


@cache
def _file(name: str) -> StaticFile:
    type_, body = _type(name), _static().joinpath(name).read_bytes()
    assert type_ is not None
    if name.endswith(".js") and not name.startswith("vendor/"):
        body = _LOADED.sub(lambda found: b"%b?v=%b" % (found[0], _file(found[1].decode()).digest.encode()), body)
    return StaticFile(name, type_, body)


def _type(name: str) -> str | None:
    return _TYPES.get(f".{name.rpartition('.')[2]}")


def _static() -> Traversable:
    return resources.files("muster_coordinator.web.pages").joinpath("static")


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
