"""When a report is delivered again: a few times, after pauses of random length, so that nodes spread their attempts."""

import random
from collections.abc import Iterator

PAUSES_S = (1.0, 5.0, 15.0)
"""The longest pause before each further attempt."""


def pauses_s() -> Iterator[float]:
    """The pauses, in seconds."""
    for longest_s in PAUSES_S:
        yield random.uniform(0, longest_s)  # noqa: S311 (spreads attempts)
