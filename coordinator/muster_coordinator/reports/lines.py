"""Lines of reports for people, whatever the report."""

from collections.abc import Iterable, Iterator

from muster.terminal import in_one_line
from muster_coordinator.reports.naming import by_value, names
from muster_coordinator.sweep_records import Blame


def indented(lines: Iterable[str]) -> list[str]:
    """The lines, two spaces further to the right."""
    return [f"  {line}" for line in lines]


def blame_lines(blamed: Iterable[Blame]) -> Iterator[str]:
    """Who kept a group from forming or finishing, and how; those of whom the same is said in one line."""
    said = by_value({blame.node: _blame(blame) for blame in blamed})
    return (f"{names(nodes)}: {what}" for what, nodes in said.items())


def _blame(blame: Blame) -> str:
    detail = in_one_line(blame.detail)
    return blame.reason + (f" ({detail})" if detail else "")
