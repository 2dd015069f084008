"""How long the runs of nodes that find nothing new wait at their agents, so that many come in one report.

The idea: the coordinator wants about the same number of reports a second from a fleet of any size. In a small fleet
each run comes at once; in a large one the agents gather. Example: 2,000 nodes wait 10 s, 10,000 wait 45 s. With the
cadences as shipped a node makes a run every six seconds, so seven of them travel together.
"""

REPORTS_PER_S = 200.0
"""Each report costs the coordinator about 0.3 ms besides its runs, for the message and its acknowledgement: 6 % of a
core for so many."""

LEAST_HOLD_S = 1.0
"""Waiting for less than this saves next to nothing."""

LONGEST_HOLD_S = 45.0
"""A run that arrives a minute after its end counts as late (`node.LATE_S`): other runs may wait behind it."""


def hold_s(nodes: int) -> float:
    """How long such runs may wait, in a fleet of so many nodes."""
    wanted = nodes / REPORTS_PER_S
    return 0.0 if wanted < LEAST_HOLD_S else min(wanted, LONGEST_HOLD_S)
