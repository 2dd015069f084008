"""How long the runs of nodes that find nothing new wait at their agents, so that many come in one report.

The idea: the coordinator wants about the same number of reports a second from a fleet of any size. In a small fleet
each run comes at once; in a large one the agents gather. Example: 2,000 nodes wait 30 s, 10,000 wait 45 s. With the
cadences as shipped a node makes a run every six seconds, so five or eight of them travel together.

Nodes that join together, or that send everything again to a new coordinator, would go on to report together, and
the coordinator would have much to do for a moment, and then nothing. So each acknowledgement says another wait.

If the coordinator does not keep up, agents gather for longer. Example: 500 nodes wait 30 s; messages wait 1 s for the
coordinator, so the nodes wait 40 s.
"""

REPORTS_PER_S = 200.0
"""Each report costs the coordinator about 0.3 ms besides its runs, for the message and its acknowledgement: 6 % of a
core for 200 a second."""

LEAST_HOLD_S = 1.0
"""Waiting for less than this saves next to nothing."""

SHORTEST_HOLD_S = 30.0
"""If agents gather at all, then for this long. Topic, fields and acknowledgement of a report are 250 bytes; five runs
that travel together keep the traffic of a node below 3 MB a day."""

LONGEST_HOLD_S = 45.0
"""A run that arrives a minute after its end counts as late (`node.LATE_S`): other runs may wait behind it."""


LAG_COUNTS = 10.0
"""Agents wait this much longer than messages wait for the coordinator: a lag of 4.5 s makes them wait for 45 s."""


SPREAD = 0.25
"""By how much of the wait it may be shorter. A herd of nodes is spread over the whole wait after four of them."""

_GOLDEN = 0.618034
"""The fractions of its multiples fill an interval evenly, however many there are."""


def hold_s(nodes: int, lag_s: float = 0.0) -> float:
    """How long such runs may wait in a fleet of `nodes`, if messages wait `lag_s` seconds for the coordinator."""
    gathered = nodes / REPORTS_PER_S
    if gathered >= LEAST_HOLD_S:
        gathered = max(gathered, SHORTEST_HOLD_S)
    wanted = gathered + LAG_COUNTS * lag_s
    return 0.0 if wanted < LEAST_HOLD_S else min(wanted, LONGEST_HOLD_S)


def spread(hold_s: float, number: int) -> float:
    """The wait that acknowledgement `number` says: up to SPREAD shorter, so that nodes do not go on in step."""
    return round(hold_s * (1.0 - SPREAD * (number * _GOLDEN % 1.0)), 1)
