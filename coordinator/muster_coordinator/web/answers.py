"""The answers of routes: a record, or a page of them."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel

from muster.model import Data, Name
from muster_coordinator.store.paging import Page, make_cursor, read_cursor
from muster_coordinator.web.requests import PageQuery

ItemT = TypeVar("ItemT")
ShownT = TypeVar("ShownT", bound=BaseModel)
KeyT = TypeVar("KeyT", str, int)


class RequestedRun(Data):
    """The id that a run will have."""

    id: Name


class Working(Data):
    """The answer of probes when everything works."""

    status: Literal["ok"] = "ok"


def page(
    items: Sequence[ItemT],
    key: Callable[[ItemT], KeyT],
    kind: type[KeyT],
    wanted: PageQuery,
    show: Callable[[ItemT], ShownT],
) -> Page[ShownT]:
    """A page of items in memory, sorted by `key`, which is of this kind; `show` makes the answer of each item."""
    if wanted.cursor is not None:
        (after,) = read_cursor(wanted.cursor, [kind])
        items = items[bisect_right(items, after, key=key) :]
    more = len(items) > wanted.limit
    items = items[: wanted.limit]
    return Page(items=tuple(map(show, items)), next_cursor=make_cursor(key(items[-1])) if more else None)


def answer(data: BaseModel, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> web.Response:
    """A record as the answer."""
    return _json(data.model_dump_json(), status, headers)


async def answer_large(data: BaseModel, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> web.Response:
    """A record as the answer, for answers of many megabytes: other requests are answered meanwhile."""
    return _json(await asyncio.to_thread(data.model_dump_json), status, headers)


def _json(text: str, status: HTTPStatus, headers: dict[str, str]) -> web.Response:
    return web.Response(text=text, status=status, content_type="application/json", headers=headers)
