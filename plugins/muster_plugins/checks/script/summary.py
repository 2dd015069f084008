"""Chooses the line of a script's text that says what it found.

The first line does, as Nagios plugins and node-problem-detector ask for. But where a script has failed and begins with
what passed, or with a heading, its first line would praise the node that it condemns: then the line that fails does.
"""

import re

_PASSES_FIRST = re.compile(r"\W*(?:SUCCESS(?:FUL)?|OK|PASS(?:ED)?|INFO|DONE|SKIP(?:PED)?)\b", re.IGNORECASE)
_PASSES = re.compile(r"\b(?:PASS(?:ED)?|SUCCESS)\b|✓|✔", re.IGNORECASE)
_HEADS = re.compile(r"\W*$|[=#*_-]{2,}|(?:running|starting|checking|testing)\b|.*:$", re.IGNORECASE)
_FAILS = re.compile(
    r"not ok\b|\b(?:FAIL(?:ED|URES?|S)?|ERRORS?|CRIT(?:ICAL)?|FATAL|WARN(?:ING)?|UNKNOWN|UNHEALTHY|BAD)\b|✗|✘",
    re.IGNORECASE,
)
_FAILS_FIRST = re.compile(rf"\W*(?:{_FAILS.pattern})", re.IGNORECASE)


def summary_line(text: str, *, failed: bool) -> str:
    """The line of `text` to show; of a script that has `failed`, one that does not tell of a success."""
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    if not lines:
        return ""
    if not failed or _tells(lines[0]):
        return lines[0]
    others = [*filter(_tells, lines)] or lines
    failing = [*filter(_FAILS_FIRST.match, others), *filter(_FAILS.search, others)]
    return (failing or others)[0]


def _tells(line: str) -> bool:
    """Whether a line may say what failed: one that is no heading and tells of no success."""
    passes = _PASSES_FIRST.match(line) or (_PASSES.search(line) and not _FAILS.search(line))
    return not passes and not _HEADS.match(line)
