"""Lines of reports for people, whatever the report."""

import re
from collections.abc import Iterable, Iterator

from muster_coordinator.reports.naming import by_value, names
from muster_coordinator.sweep_records import Blame

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def for_terminal(text: str) -> str:
    """The text without what would command a terminal: nodes report what their programs printed."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def indented(lines: Iterable[str]) -> list[str]:
    """The lines, two spaces further to the right."""
    return [f"  {line}" for line in lines]


def blame_lines(blamed: Iterable[Blame]) -> Iterator[str]:
    """Who kept a group from forming or finishing, and how; those of whom the same is said in one line."""
    said = by_value({blame.node: _blame(blame) for blame in blamed})
    return (f"{names(nodes)}: {what}" for what, nodes in said.items())


def _blame(blame: Blame) -> str:
    detail = " ".join(blame.detail.split())
    return blame.reason + (f" ({detail})" if detail else "")
