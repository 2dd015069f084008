"""Chooses the line of a script's text that says what it found.

Nagios plugins name their state in the first line. Other scripts that have failed may begin with what passed, with a
heading, or with what they are about to do. So the line to show is the first that tells of a failure, or else of a
warning, or else the first of all.
"""

import re

_STATE = re.compile(r"\b(?:WARNING|CRITICAL|UNKNOWN)\b")
_PASSES_FIRST = re.compile(r"\W*(?:SUCCESS(?:FUL)?|OK|PASS(?:ED)?|INFO|DONE|SKIP(?:PED)?)\b", re.IGNORECASE)
_PASSES = re.compile(r"\b(?:PASS(?:ED)?|SUCCESS)\b|✓|✔", re.IGNORECASE)
_HEADS = re.compile(r"\W*$|[=#*_-]{2,}|(?:running|starting|checking|testing)\b|.*:$", re.IGNORECASE)
_FAILURE = r"not ok\b|\b(?:FAIL(?:ED|URES?|S)?|ERRORS?|CRIT(?:ICAL)?|FATAL|UNKNOWN|UNHEALTHY|BAD|CANNOT)\b|✗|✘"
_FAILS = re.compile(rf"(?!\W*WARN).*(?:{_FAILURE})", re.IGNORECASE)
_FAILS_FIRST = re.compile(rf"\W*(?:{_FAILURE})", re.IGNORECASE)
_DENIES = re.compile(r"\b(?:no|0|without)(?: \w+)? (?:errors?|failures?|warnings?)\b|: *(?:none|0)$", re.IGNORECASE)
_WARNS = re.compile(r"\bWARN(?:ING)?\b", re.IGNORECASE)


def summary_line(text: str, *, failed: bool) -> str:
    """The line of `text` to show; of a script that has `failed`, one that does not tell of a success."""
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    if not lines:
        return ""
    if not failed or _STATE.search(lines[0]):
        return lines[0]
    others = [*filter(_tells, lines)] or lines
    told = (line for tells in (_FAILS_FIRST.match, _FAILS.match, _WARNS.search) for line in filter(tells, others))
    return next(told, others[0])


def _tells(line: str) -> bool:
    """Whether a line may say what failed: one that is no heading, tells of no success and denies no failure."""
    if _HEADS.match(line) or _PASSES_FIRST.match(line) or _DENIES.search(line):
        return False
    return not _PASSES.search(line) or bool(_FAILS.match(line) or _WARNS.search(line))
