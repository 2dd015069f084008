"""Nodes that are taken out again and again: each time they stay out longer, and in the end a person decides."""

import math
from collections.abc import Sequence

from muster.model import ServiceState, format_instant
from muster.quarantine_settings import ReturnSettings
from muster_coordinator.model.case import Case

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


def back_at(case: Case, settings: ReturnSettings) -> float:
    """When a node that is CORDONED may be tested, at the earliest."""
    return case.since + wait_s(case.taken_out, settings)


def told(case: Case, settings: ReturnSettings, now: float) -> str:
    """What its story adds about a node that has been taken out: from when on it may be tested, if not at once."""
    is_out = case.state is ServiceState.CORDONED and not needs_a_person(case.taken_out, settings)
    moment = back_at(case, settings)
    return f"; it may be tested from {format_instant(moment)} on" if is_out and moment > now else ""


def needs_a_person(taken_out: Sequence[float], settings: ReturnSettings) -> bool:
    """Whether it was out so often that it does not come back by itself again."""
    return score(taken_out, settings) > settings.times - 0.5
