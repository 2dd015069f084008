"""How long the runs of nodes that find nothing new wait at their agents, so that many come in one report.

The idea: the coordinator wants about the same number of reports a second from a fleet of any size, so in a large one
the agents gather. Example: 2,000 nodes wait 30 s, 10,000 wait 45 s. With the cadences as shipped a node makes a run
every six seconds, so five or eight of them travel together.

In a small fleet this spares bytes: what is around a run that travels alone takes more of them than its numbers. So
agents gather there, too, but less than the interval of the check that runs most often. Example: nvml runs every 15 s,
so runs wait 12 s, and a report has two or three. Where a check runs every 2 s they wait 1.6 s, and where one runs every
second each run comes at once.

Nodes that join together, or that send everything again to a new coordinator, would go on to report together, and
the coordinator would have much to do for a moment, and then nothing. So each acknowledgement says another wait.

If the coordinator does not keep up, agents gather for longer. Example: 500 nodes wait 30 s; messages wait 1 s for the
coordinator, so the nodes wait 40 s.
"""

import math

REPORTS_PER_S = 200.0
"""Each report costs the coordinator about 0.3 ms besides its runs, for the message and its acknowledgement: 6 % of a
core for 200 a second."""

CADENCE_SHARE = 0.8
"""In small fleets runs wait for this share of the interval of the check that runs most often. A report for each of its
runs also has the runs of all other checks since the report before."""

SMALL_FLEET_HOLD_S = 12.0
"""In small fleets runs wait no longer than this, which is that share of 15 s. It keeps the traffic of a node below 3 MB
a day, and the page of a node shows numbers of the last half minute."""

LEAST_HOLD_S = 1.0
"""Waiting for less than this saves next to nothing."""

SHORTEST_HOLD_S = 30.0
"""If agents gather to spare the coordinator work, then for this long. Topic, fields and acknowledgement of a report are
250 bytes; five runs that travel together keep the traffic of a node below 3 MB a day."""

LONGEST_HOLD_S = 45.0
"""A run that arrives a minute after its end counts as late (`node.LATE_S`): other runs may wait behind it."""


LAG_COUNTS = 10.0
"""Agents wait this much longer than messages wait for the coordinator: a lag of 4.5 s makes them wait for 45 s."""


SPREAD = 0.25
"""By how much of the wait it may be shorter. A herd of nodes is spread over the whole wait after four of them."""

_GOLDEN = 0.618034
"""The fractions of its multiples fill an interval evenly, however many there are."""


def hold_s(nodes: int, lag_s: float = 0.0, cadence_s: float = math.inf) -> float:
    """How long such runs may wait in a fleet of `nodes`, if messages wait `lag_s` seconds for the coordinator.

    `cadence_s` is the interval of the check that runs most often on the node.
    """
    gathered = nodes / REPORTS_PER_S
    if gathered >= LEAST_HOLD_S:
        gathered = max(gathered, SHORTEST_HOLD_S)
    else:
        gathered = min(CADENCE_SHARE * cadence_s, SMALL_FLEET_HOLD_S)
    wanted = gathered + LAG_COUNTS * lag_s
    return 0.0 if wanted < LEAST_HOLD_S else min(wanted, LONGEST_HOLD_S)


def spread(hold_s: float, number: int) -> float:
    """The wait that acknowledgement `number` says: up to SPREAD shorter, so that nodes do not go on in step."""
    return round(hold_s * (1.0 - SPREAD * (number * _GOLDEN % 1.0)), 1)
