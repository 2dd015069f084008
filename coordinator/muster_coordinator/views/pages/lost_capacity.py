"""How much capacity the fleet has lost: the time in which nodes were out of service or silent; how soon they return.

Time in which a node was both counts once. A dry run takes no capacity.

Example: n1 was CORDONED from 10:00 to 12:00 and silent from 11:00 to 13:00. At 14:00 that is 3 node-hours.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.model.quarantine import OUT
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.views.pages.page_row import PageRow

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
LONGEST_S = 7 * DAY_S

SILENCE_KINDS = ("lost", "back")
"""The kinds of story entries at which a node begins and ends to be silent."""

Span = tuple[float, float]
"""Begin and end of a time."""

Turn = tuple[float, bool]
"""A time at which capacity is lost from then on (true), or no longer."""


@dataclass(frozen=True, slots=True)
class CapacityHistory:
    """What happened to the capacity within LONGEST_S; the oldest is left out if it `is_cut`."""

    transitions: tuple[TransitionRecord, ...] = ()
    silences: tuple[StoryEntry, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class LostCapacity:
    """Node-hours lost within a day and within seven, and their share of what the fleet could have given.

    `return_s` is the median time from cordon to service over the last `returns`; None if no node has returned.
    `is_least`: the fleet may have lost more.
    """

    day_h: float
    day_share: float
    week_h: float
    week_share: float
    return_s: float | None
    returns: int
    is_least: bool


def lost_capacity(history: CapacityHistory, rows: Iterable[PageRow], at: float) -> LostCapacity:
    """The capacity that the fleet of these nodes has lost until now."""
    present = {row.name: row for row in rows if not row.left}
    since = at - LONGEST_S
    if history.is_cut:  # nothing is known of the time before the oldest one
        known = [*(record.transition.at for record in history.transitions), *(entry.at for entry in history.silences)]
        since = min(known, default=since)
    out, silent = _out_turns(history.transitions), _silence_turns(history.silences)
    day_s = week_s = 0.0
    returns: list[float] = []
    for name in {*out, *silent, *(row.name for row in present.values() if row.is_out or row.lost)}:
        row = present.get(name)
        is_out = row is not None and row.is_out and not row.dry_run
        out_since = row.out_since if row is not None and is_out else None
        silent_since = row.last_seen if row is not None and row.lost else None
        of_out = _spans(out.get(name, ()), now_since=out_since, since=since, at=at)
        of_silence = _spans(silent.get(name, ()), now_since=silent_since, since=since, at=at)
        lost = _merged([*of_out, *of_silence])
        week_s += sum(end - begin for begin, end in lost)
        day_s += sum(max(0.0, end - max(begin, at - DAY_S)) for begin, end in lost)
        returns += [end - begin for begin, end in of_out if begin > since and end < at]
    whole = len(present) or 1
    return LostCapacity(
        day_h=day_s / HOUR_S,
        day_share=day_s / (whole * DAY_S),
        week_h=week_s / HOUR_S,
        week_share=week_s / (whole * LONGEST_S),
        return_s=statistics.median(returns) if returns else None,
        returns=len(returns),
        is_least=history.is_cut,
    )


def _out_turns(records: Iterable[TransitionRecord]) -> dict[str, list[Turn]]:
    turns: defaultdict[str, list[Turn]] = defaultdict(list)
    for transition in (record.transition for record in records):
        if not transition.dry_run and OUT & {transition.before, transition.after}:
            turns[transition.node].append((transition.at, transition.after in OUT))
    return turns


def _silence_turns(entries: Iterable[StoryEntry]) -> dict[str, list[Turn]]:
    turns: defaultdict[str, list[Turn]] = defaultdict(list)
    for entry in entries:
        turns[entry.node].append((entry.at, entry.kind == "lost"))
    return turns


def _spans(turns: Sequence[Turn], *, now_since: float | None, since: float, at: float) -> list[Span]:
    """The times in which capacity was lost. What ends first began before `since`.

    If `now_since` is set, it is lost until `at`; since then, if no turn says more.
    """
    spans: list[Span] = []
    begin = None if turns or now_since is None else max(since, now_since)
    for index, (moment, is_begin) in enumerate(sorted(turns)):
        if is_begin:
            begin = moment if begin is None else begin
        elif begin is not None or index == 0:
            spans.append((since if begin is None else begin, moment))
            begin = None
    if begin is not None and now_since is not None:
        spans.append((begin, at))
    return spans


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The same times, none twice."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
