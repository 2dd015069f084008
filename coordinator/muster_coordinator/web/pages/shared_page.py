"""A page that is the same for everybody, made once for all who ask for it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable


class SharedPage:
    """Makes one page at a time. Who asks while one is made gets the next one, and never one begun before.

    Example: 50 people reload the page of 10,000 nodes within the half second that it takes. It is made twice.

    With `rest`, the next one begins only after so many times as long as the last one took. It bounds the processor's
    share for pages that many browsers ask for again and again: at 10, to a tenth of a core.
    """

    def __init__(self, make: Callable[[], Awaitable[str]], *, rest: float = 0.0) -> None:
        self._make = make
        self._rest = rest
        self._turn = asyncio.Lock()
        self._begun = 0
        self._rested_at = 0.0
        self._page: str | None = None

    async def get(self) -> str:
        """The page as it is now."""
        wanted = self._begun + 1
        async with self._turn:
            if self._page is None or self._begun < wanted:
                now = asyncio.get_running_loop().time
                await asyncio.sleep(max(0.0, self._rested_at - now()))
                self._begun += 1
                self._page, began = None, now()  # an error must not leave an older page to the next
                self._page = await self._make()
                self._rested_at = now() + self._rest * (now() - began)
            return self._page
