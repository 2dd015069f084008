"""Nodes that are taken out again and again: each time they stay out longer, and in the end a person decides."""

import math
from collections.abc import Sequence

from muster.quarantine_settings import ReturnSettings

DAY_S = 86_400.0


def score(taken_out: Sequence[float], settings: ReturnSettings) -> float:
    """How often a node was out before the last time, where what lay `memory_days` back then counts half, and so on."""
    if not taken_out:
        return 0.0
    *before, last = taken_out
    half_life_s = settings.memory_days * DAY_S
    return sum(math.exp2(-max(0.0, last - moment) / half_life_s) for moment in before)


def wait_s(taken_out: Sequence[float], settings: ReturnSettings) -> float:
    """How long a node that is out stays out at least, in seconds, from when it was taken out the last time."""
    return min(settings.wait_s * math.exp2(min(score(taken_out, settings), 1000.0)), settings.longest_wait_s)


def needs_a_person(taken_out: Sequence[float], settings: ReturnSettings) -> bool:
    """Whether it was out so often that it does not come back by itself again."""
    return score(taken_out, settings) > settings.times - 0.5
