"""What the kernel's log has told so far and still stands: a fold over its records.

Events are counted by what happened to what, so that a million equal lines are one entry with a count. An entry stands
until something ends it, such as the reset that it asked for, or until it has not been seen for a while; `Windows` says
how long. After a reboot nothing stands. At most `MOST_KINDS` are kept.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from muster import Action, Severity
from muster_plugins.checks.kernel_log.records import Record
from muster_plugins.checks.kernel_log.rules import End, Event, recognise

MOST_KINDS = 64
"""Of more, errors are kept before others and what was seen last before what was seen earlier."""

MOST_TEXT = 300
"""Characters of a line that are kept as a sample."""

LOST = Event(
    code="lost",
    summary="lines of the kernel log were overwritten before they could be read",
    severity=Severity.WARNING,
    action=Action.NONE,
    source="gaps in the kernel's sequence numbers",
)
UNREADABLE = Event(
    code="unreadable",
    summary="lines of the kernel log are not in its format",
    severity=Severity.INFO,
    action=Action.NONE,
    source="Linux, Documentation/ABI/testing/dev-kmsg",
)
CROWDED = Event(
    code="crowded",
    summary=f"more than {MOST_KINDS} kinds of events: the least recent were dropped",
    severity=Severity.WARNING,
    action=Action.NONE,
    source="muster",
)


@dataclass(slots=True)
class Entry:
    """One kind of event: how often, first and last at which second since the boot, and the last line that told of it.

    `recent` is about the number within the period of the event's rate: each occurrence fades away with that period as
    its time constant. Without a rate it is the count.
    """

    event: Event
    count: int
    recent: float
    first_s: float
    last_s: float
    sample: str = ""

    def recent_at(self, at_s: float) -> float:
        """What is left of `recent` at `at_s`."""
        if self.event.rate is None:
            return self.recent
        return self.recent * math.exp(-max(0.0, at_s - self.last_s) / self.event.rate.per_s)

    def add(self, count: int, at_s: float, sample: str) -> None:
        """Counts further occurrences."""
        self.recent = self.recent_at(at_s) + count
        self.count += count
        self.last_s = max(self.last_s, at_s)
        self.sample = sample[:MOST_TEXT]


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """For how many seconds after they were seen last errors and other events stand."""

    error_s: float
    other_s: float

    def hold(self, entry: Entry, now_s: float) -> bool:
        """Whether the entry still stands."""
        window_s = self.error_s if entry.event.severity is Severity.ERROR else self.other_s
        if entry.event.rate:
            window_s = max(window_s, entry.event.rate.per_s)
        return now_s - entry.last_s <= window_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What stands, and up to where the log of this boot has been read: the last sequence number and time."""

    boot_id: str
    seq: int | None = None
    at_s: float = -1.0
    entries: list[Entry] = field(default_factory=list)


def fold(
    before: Standing, records: Iterable[Record | None], *, now_s: float, windows: Windows, forgiven_s: float = -1.0
) -> Standing:
    """What stands after `records`, of which those that were read before are passed over.

    `now_s` is the time since the boot, which no record is later than; what happened up to `forgiven_s` does not count.
    """
    tally = _Tally({entry.event: replace(entry) for entry in before.entries if entry.last_s > forgiven_s})
    seq, at_s = before.seq, before.at_s
    for record in records:
        if record is None:
            tally.count(UNREADABLE, now_s)
            continue
        if not _is_new(record, before):
            continue
        if record.seq is not None and seq is not None and record.seq > seq + 1:
            tally.count(LOST, min(record.at_s, now_s), times=record.seq - seq - 1)
        seq, at_s = record.seq, max(at_s, record.at_s)
        if record.at_s > forgiven_s:
            tally.take(recognise(record), min(record.at_s, now_s), record.text)
    entries = tally.most_relevant()
    return Standing(
        boot_id=before.boot_id, seq=seq, at_s=at_s, entries=[entry for entry in entries if windows.hold(entry, now_s)]
    )


def _is_new(record: Record, before: Standing) -> bool:
    """The sequence number tells; where the source has changed since, only the time can."""
    if record.seq is not None and before.seq is not None:
        return record.seq > before.seq
    return record.at_s > before.at_s


class _Tally:
    """Entries while they are counted; at no time more than twice as many as are kept."""

    def __init__(self, entries: dict[Event, Entry]) -> None:
        self._entries = entries

    def take(self, told: Event | End | None, at_s: float, text: str) -> None:
        match told:
            case Event():
                self.count(told, at_s, sample=text)
            case End():
                self._entries = {event: entry for event, entry in self._entries.items() if not told.ends(event)}

    def count(self, event: Event, at_s: float, *, times: int = 1, sample: str = "") -> None:
        entry = self._entries.get(event)
        if entry is None:
            entry = self._entries[event] = Entry(event, 0, 0.0, at_s, at_s)
        entry.add(times, at_s, sample)
        if len(self._entries) > 2 * MOST_KINDS:
            self.most_relevant()

    def most_relevant(self) -> list[Entry]:
        """The entries that are kept, in order of their first occurrence; the others are dropped and counted."""
        ranked = sorted(self._entries.values(), key=_relevance, reverse=True)
        kept, dropped = ranked[:MOST_KINDS], ranked[MOST_KINDS:]
        self._entries = {entry.event: entry for entry in sorted(kept, key=lambda entry: entry.first_s)}
        if dropped:
            self.count(CROWDED, max(entry.last_s for entry in ranked), times=len(dropped))
        return list(self._entries.values())


def _relevance(entry: Entry) -> tuple[bool, bool, float]:
    return entry.event == CROWDED, entry.event.severity is Severity.ERROR, entry.last_s
