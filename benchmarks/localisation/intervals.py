"""What counts of hits say about a share: intervals by Clopper and Pearson, and how many tries bound a share.

The interval has all shares at which so many hits, or so few, would not be rare: neither tail is below half of what the
confidence leaves. It is exact for any number of tries, so also for no hit at all, which is the case that matters here.

Example: no hit in 3,688 tries. The share is at most 0.001 with 95 % confidence. No hit in 100 tries bounds it by 0.036.
"""

import math
from collections.abc import Callable

CONFIDENCE = 0.95
STEPS = 60
"""Halvings of the interval from 0 to 1, more than a float has digits."""


def interval_of(hits: int, tries: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The lowest and the highest share that explain this number of hits; from 0 to 1 without tries."""
    tail = (1 - confidence) / 2
    low = _crossing(lambda share: at_most(tries - hits, tries, 1 - share) < tail) if hits else 0.0
    high = _crossing(lambda share: at_most(hits, tries, share) >= tail) if hits < tries else 1.0
    return low, high


def tries_to_bound(share: float, confidence: float = CONFIDENCE) -> int:
    """The number of tries without a hit that bounds the share."""
    return math.ceil(math.log((1 - confidence) / 2) / math.log1p(-share))


def at_most(hits: int, tries: int, share: float) -> float:
    """The probability of this number of hits or fewer."""
    if share in (0.0, 1.0):
        return float(share == 0.0 or hits >= tries)
    every, log, rest = math.lgamma(tries + 1), math.log(share), math.log1p(-share)
    logs = (
        every - math.lgamma(hit + 1) - math.lgamma(tries - hit + 1) + hit * log + (tries - hit) * rest
        for hit in range(hits + 1)
    )
    return math.fsum(map(math.exp, logs))


def _crossing(is_below: Callable[[float], bool]) -> float:
    """The share up to which this holds."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2
