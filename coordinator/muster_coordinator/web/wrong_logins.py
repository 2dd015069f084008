"""Limits how often a client may try wrong tokens. Pure.

Example: ten wrong tokens from one address are refused at once, and one more every ten seconds. A token has 256 random
bits, so this saves the log and the processor rather than the token.
"""

import math
from collections import OrderedDict

from muster.token_bucket import TokenBucket

BURST, PER_S = 10.0, 0.1

MOST_ADDRESSES = 1_000
"""One more forgets the address that tried last of all."""


class WrongLogins:
    """The wrong logins by address, the latest last."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait_s(self, address: str, now: float) -> int:
        """How many seconds the address must wait before it may try again; 0 if it may."""
        bucket = self._left.get(address)
        return 0 if bucket is None else max(0, math.ceil((1 - bucket.left(now)) / PER_S))

    def note(self, address: str, now: float) -> None:
        """Notes a wrong login."""
        bucket = self._left.setdefault(address, TokenBucket(BURST, PER_S))
        bucket.left(now)
        bucket.spend(1)
        self._left.move_to_end(address)
        if len(self._left) > MOST_ADDRESSES:
            self._left.popitem(last=False)
