"""Chooses the line of a script's text that says what it found.

The first line does, as Nagios plugins and node-problem-detector ask for. But where a script has failed and begins with
what passed, or with a heading, its first line would praise the node that it condemns: then the line that fails does.
"""

import re

_PASSES = re.compile(r"\W*(?:SUCCESS(?:FUL)?|OK|PASS(?:ED)?|INFO|DONE|SKIP(?:PED)?)\b|.*(?:\b(?:PASS(?:ED)?|OK)|✓|✔)\W*$", re.I)
_HEADS = re.compile(r"\W*$|[=#*_-]{2,}|(?:running|starting|checking|testing)\b", re.I)
_FAILS = re.compile(
    r"\bnot ok\b|\b(?:FAIL(?:ED|URES?|S)?|ERRORS?|CRIT(?:ICAL)?|FATAL|WARN(?:ING)?|UNKNOWN|UNHEALTHY|BAD)\b|✗|✘", re.I
)


def summary_line(text: str, *, failed: bool) -> str:
    """The line of `text` to show; of a script that has `failed`, one that does not tell of a success."""
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    if not lines:
        return ""
    if not failed or not (_PASSES.match(lines[0]) or _HEADS.match(lines[0])):
        return lines[0]
    others = [line for line in lines if not _PASSES.match(line) and not _HEADS.match(line)]
    return next(filter(_FAILS.search, others), (others or lines)[0])
