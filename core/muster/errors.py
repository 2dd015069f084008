"""The errors that a person or a peer can cause; any other exception is a bug and ends with a traceback."""

import bisect
from collections.abc import Iterable, Sequence

EX_USAGE = 64
"""Exit code for wrong usage and wrong settings (sysexits.h)."""

EX_UNAVAILABLE = 69
"""Exit code if a server, port or file that is needed is unavailable (sysexits.h)."""

EX_SOFTWARE = 70
"""Exit code after a bug in muster (sysexits.h). Python's own would be 1, which a verdict uses for WARN."""

EX_IOERR = 74
"""Exit code if a database or the output cannot be written any more (sysexits.h)."""

_LISTED = 30

_QUOTED = 300
"""Characters of a wrong value that a message repeats."""

_COMPARED = 300
"""Valid names that are compared with a wrong one. A node may announce thousands to keep the coordinator busy."""

_LONGEST_COMPARED = 64
"""Characters of a compared name. Comparing takes time in proportion to the product of both lengths: 300 names of 64
characters take up to 0.1 s."""


class MusterError(Exception):
    """An error that the user can fix; shown as one line, without a traceback."""

    exit_code = EX_USAGE


class SettingsError(MusterError):
    """The settings are wrong; the message names the key, the problem and a valid value."""


class Unavailable(MusterError):
    """A server, port or file that is needed is unavailable now."""

    exit_code = EX_UNAVAILABLE


class OutputFailed(MusterError):
    """What the command has to say cannot be written, such as into a file on a full disk."""

    exit_code = EX_IOERR


class Refused(MusterError):
    """A request that cannot be carried out as given; the message says what would be valid."""


class RemoteError(Exception):
    """Bytes from a peer that we do not accept. Counted by `kind` and dropped, never raised further.

    `kind` is one of `malformed`, `oversized`, `unknown_version`, `wrong_node` and `unknown_topic`.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


def unknown(what: str, name: str, valid: Iterable[str]) -> str:
    """One line that refuses `name`, suggests the nearest valid name and lists what is valid, up to `_LISTED` names."""
    import difflib  # noqa: PLC0415 (memory that every agent would spend, for a message that few need)

    names = sorted(map(str, valid))
    near = difflib.get_close_matches(name, _neighbours(name, names), n=1) if len(name) <= _LONGEST_COMPARED else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listing = ", ".join(names[:_LISTED]) or "none"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"unknown {what} {quoted(name)}{hint} (valid: {listing}{more})"


def quoted(value: object) -> str:
    """The value in quotes, for a message that refuses it; only the start of a long one."""
    shown = repr(value)
    return shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}…"


def ambiguous(what: str, prefix: str, found: Sequence[str], most: int) -> str:
    """One line for a `prefix` that several ids begin with; it names the first `most` of them."""
    more = " and more" if len(found) > most else ""
    return f"several {what}s begin with {prefix!r}: {', '.join(found[:most])}{more}; type more characters"


def _neighbours(name: str, names: list[str]) -> list[str]:
    """The sorted names around the place of `name`. Names further away begin with other characters."""
    short = [other for other in names if len(other) <= _LONGEST_COMPARED]
    place = bisect.bisect(short, name)
    return short[max(0, place - _COMPARED // 2) :][:_COMPARED]
