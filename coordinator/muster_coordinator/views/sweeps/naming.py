"""Phrases that all reports share: names of nodes and of failed parts, indented lines, blamed members."""

from collections.abc import Iterable, Iterator, Mapping

from muster.terminal import in_one_line
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.sweep_records import Blame, FailedFabric, FailedNode

MOST_NAMES = 8
"""Maximum number of names in one line. Further names are only counted: a group may have hundreds of members."""

_DIRECTIONS = {"send": " when it sends", "receive": " when it receives"}


def names(nodes: Iterable[str], separator: str = ", ") -> str:
    """Lists MOST_NAMES names in order, and counts the rest."""
    every = tuple(nodes)
    if len(every) <= MOST_NAMES + 1:  # a count of one name would not be shorter than the name
        return separator.join(every)
    return f"{separator.join(every[:MOST_NAMES])} and {len(every) - MOST_NAMES} others"


def by_value(said: Mapping[str, str]) -> dict[str, list[str]]:
    """The names with each sentence, in order."""
    found: dict[str, list[str]] = {}
    for name, what in said.items():
        found.setdefault(what, []).append(name)
    return found


def failed_part(failed: FailedNode) -> str:
    """The faulty part of a node, after a comma; empty for the whole node."""
    direction = _DIRECTIONS.get(failed.direction or "", "")
    match failed.part:
        case Part.NODE_LINK:
            return f", its link{direction}"
        case Part.RAIL:
            return f", its rail{'s' if len(failed.rails) > 1 else ''} {', '.join(map(str, failed.rails))}{direction}"
    return direction and f",{direction}"


def fabric(failed: FailedFabric) -> str:
    """The name of the faulty part of the fabric."""
    return f"leaf {failed.leaves[0]}" if len(failed.leaves) == 1 else f"path {' - '.join(failed.leaves)}"


def indented(lines: Iterable[str]) -> list[str]:
    """The lines, indented by two spaces."""
    return [f"  {line}" for line in lines]


def blame_lines(blamed: Iterable[Blame]) -> Iterator[str]:
    """The members that kept a group from forming or finishing, and how; one line for equal sentences."""
    said = by_value({blame.node: _blame(blame) for blame in blamed})
    return (f"{names(nodes)}: {what}" for what, nodes in said.items())


def _blame(blame: Blame) -> str:
    detail = in_one_line(blame.detail)
    return blame.reason + (f" ({detail})" if detail else "")
