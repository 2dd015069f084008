"""Limits how often one kind of log line is written, so that no peer can fill the log."""

from dataclasses import dataclass

PERIOD_S = 60.0
"""One line a minute of each kind is enough for a person."""

MOST_KINDS = 1_000
"""Our kinds are constants in the code. This limits the kinds of lines from libraries."""


@dataclass(slots=True)
class _Written:
    """The time of the last line of a kind, and the number of lines left out since."""

    at: float
    left_out: int = 0


class LogLimit:
    """Admits one log line of each kind within `PERIOD_S`, and counts the lines that it leaves out.

    Use it like this, with any clock that only goes forward:

        if (left_out := limit.admit("message_refused malformed", now)) is not None:
            log.warning("message_refused", kind="malformed", left_out=left_out)
    """

    def __init__(self) -> None:
        self._written: dict[str, _Written] = {}

    def admit(self, kind: str, now: float) -> int | None:
        """The number of lines of this kind left out since the last one; None if this one must be left out, too."""
        last = self._written.get(kind)
        if last is not None and now - last.at < PERIOD_S:
            last.left_out += 1
            return None
        if last is None and len(self._written) >= MOST_KINDS:
            del self._written[next(iter(self._written))]
        self._written[kind] = _Written(now)
        return 0 if last is None else last.left_out
