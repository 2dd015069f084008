"""Selections of nodes as they stand in the URL of the table of nodes."""

import re
import shlex

from muster_coordinator.model.nodes import NodeView

_READABLE_AS_TEXT = re.compile(r"[^,*?\[\]=!'\"\\]+")
"""Values that a selection takes as they are; others would be read as lists, ranges or patterns."""


def selection(**terms: str | None) -> str | None:
    """The selection of the nodes with these values, as `/nodes?select=` takes it.

    None without values, or if a value cannot be written in a selection.
    """
    given = {key: value for key, value in terms.items() if value is not None}
    if not given or not all(_READABLE_AS_TEXT.fullmatch(value) for value in given.values()):
        return None
    return " ".join(shlex.quote(f"{key}={value}") for key, value in given.items())


def neighbours(node: NodeView) -> str:
    """The selection of the nodes in the smallest known place of a node, which it needs to be compared with.

    Empty, which stands for all nodes, if no place is known or can be written in a selection.
    """
    where = node.topology
    for terms in ({"leaf": where.leaf}, {"rack": where.rack}, {}):
        if None not in terms.values() and (found := selection(block=where.block, **terms)):
            return found
    return ""
