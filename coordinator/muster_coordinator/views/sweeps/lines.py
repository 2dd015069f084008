"""Lines of reports for people, whatever the report."""

from collections.abc import Iterable, Iterator

from muster.terminal import in_one_line
from muster_coordinator.model.sweep_records import Blame
from muster_coordinator.views.sweeps.naming import by_value, names


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
