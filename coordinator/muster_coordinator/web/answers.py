"""The answers of routes: a record, or a page of them."""

import asyncio
import json
import math
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel

from muster.model import Data, Name
from muster_coordinator.model.nodes import DatabaseUse
from muster_coordinator.store.disk_budget import GB, DiskUse
from muster_coordinator.store.paging import Page, make_cursor, read_cursor
from muster_coordinator.web.requests import PageQuery

ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")
ShownT = TypeVar("ShownT", bound=BaseModel)
KeyT = TypeVar("KeyT", str, int)

SLICE = 10
"""Items that are made at once. Ten nodes take 0.7 ms, and a short request gets its turn after four slices."""

LOOKED_AT = 100
"""Items that are looked at at once, to choose some of them: 0.8 ms."""

TURN_S = 0.002
"""How long a list is made before others get their turn."""

_ZLIB_HERE = 16 << 10
"""Answers of more bytes are compressed in a thread."""


class RequestedRun(Data):
    """The id that a run will have."""

    id: Name


class Working(Data):
    """The answer of probes when everything works."""

    status: Literal["ok"] = "ok"


def database_use(use: DiskUse) -> DatabaseUse:
    """The size of the database as the API serves it."""
    return DatabaseUse(
        used_gb=use.used_bytes / GB,
        max_gb=use.most_bytes / GB,
        days_left=use.days_left if math.isfinite(use.days_left) else None,
    )


def page(
    items: Sequence[ItemT],
    key: Callable[[ItemT], KeyT],
    kind: type[KeyT],
    wanted: PageQuery,
    show: Callable[[ItemT], ShownT],
) -> Page[ShownT]:
    """A page of items in memory, sorted by `key`, which is of this kind; `show` makes the answer of each item."""
    items, cursor = cut(items, lambda item: (key(item),), wanted, [kind])
    return Page(items=tuple(map(show, items)), next_cursor=cursor)


def cut(
    items: Sequence[ItemT], key: Callable[[ItemT], tuple[str | int, ...]], wanted: PageQuery, kinds: Sequence[type]
) -> tuple[Sequence[ItemT], str | None]:
    """The items of the page, and the cursor of the next one. The values of the sort key are of these kinds."""
    if wanted.cursor is not None:
        after = tuple(read_cursor(wanted.cursor, kinds))
        items = items[bisect_right(items, after, key=key) :]
    more = len(items) > wanted.limit
    items = items[: wanted.limit]
    return items, make_cursor(*key(items[-1])) if more else None


async def in_turns(
    items: Sequence[ItemT], at_once: int, make: Callable[[Sequence[ItemT]], Iterable[MadeT]]
) -> AsyncIterator[list[MadeT]]:
    """What `make` makes of the items, `at_once` at a time; a list for each turn.

    Other requests and messages get their turn after the first `at_once` items with which TURN_S has passed. On a busy
    coordinator a turn of all others takes longer than most slices.
    """
    made: list[MadeT] = []
    began = time.monotonic()
    for start in range(0, len(items), at_once):
        made += make(items[start : start + at_once])
        if time.monotonic() - began >= TURN_S:
            yield made
            await asyncio.sleep(0)
            made, began = [], time.monotonic()
    yield made


async def in_slices(
    items: Sequence[ItemT], at_once: int, make: Callable[[Sequence[ItemT]], Iterable[MadeT]]
) -> list[MadeT]:
    """All that `make` makes of the items, `at_once` at a time, with turns for others as in `in_turns`."""
    return [each async for made in in_turns(items, at_once, make) for each in made]


def answer_in_slices(
    keys: Sequence[tuple[str | int, ...]],
    wanted: PageQuery,
    show: Callable[[str], BaseModel | None],
    kinds: Sequence[type] = (str,),
) -> web.Response:
    """A page of named items as the answer, made in slices, which are sent as they are made.

    `keys` are sorted; the last value of each is the name of the item, and the values are of these kinds. An item for
    which `show` returns None is left out: it has gone since the request.
    """
    page_of_keys, cursor = cut(keys, lambda key: key, wanted, kinds)
    chosen = [str(key[-1]) for key in page_of_keys]
    response = _json(_page_in_turns(chosen, show, cursor), HTTPStatus.OK, {})
    if len(chosen) > SLICE:
        response.enable_compression()  # in a thread, if the client accepts it
    return response


async def _page_in_turns(
    names: Sequence[str], show: Callable[[str], BaseModel | None], cursor: str | None
) -> AsyncIterator[bytes]:
    """The bytes of a page. A page of 1,000 nodes has 5 MB: as a whole, asyncio would copy them again and again."""

    def shown(some: Sequence[str]) -> Iterable[bytes]:
        return (_bytes(item) for item in map(show, some) if item is not None)

    yield b'{"items":['
    separator = b""
    async for items in in_turns(names, SLICE, shown):
        if items:
            yield separator + b",".join(items)
            separator = b","
    yield b'],"next_cursor":' + json.dumps(cursor).encode() + b"}"


def answer(data: BaseModel, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> web.Response:
    """A record as the answer."""
    return _json(_bytes(data), status, headers)


async def answer_large(data: BaseModel, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> web.Response:
    """A record as the answer, for answers of many megabytes: other requests are answered meanwhile."""
    return _json(await asyncio.to_thread(_bytes, data), status, headers)


def _bytes(data: BaseModel) -> bytes:
    return data.model_dump_json().encode()


def _json(body: bytes | AsyncIterator[bytes], status: HTTPStatus, headers: dict[str, str]) -> web.Response:
    return web.Response(
        body=body,
        status=status,
        content_type="application/json",
        charset="utf-8",
        headers=headers,
        zlib_executor_size=_ZLIB_HERE,
    )
