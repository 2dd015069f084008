"""Max-min fair rates of flows that share links.

The idea: all flows grow at the same pace. Where a link is full, its flows stay as they are, and the others go on
growing. In the end each flow has a bottleneck: a full link on which no other flow is faster. This is the definition of
max-min fairness (Bertsekas and Gallager, Data Networks, section 6.5.2), and the usual model of congestion control that
treats flows alike. SimGrid uses it too.

A flow here may have several hops that move at one pace, as in a ring, where each rank passes on what it gets. It then
uses a link once for each hop that crosses it, and its rate is that of one hop.

Example: link x carries 10, link y 4. Flow a uses x, flow b uses x and y, flow c uses y. b and c get 2 each, because y
is full then. a gets the 8 that are left on x.

The growth is not simulated step by step. The share of a link is what is left on it, divided by the hops of its growing
flows. If no growing flow of a link can get more than that share elsewhere either, the link is their bottleneck whatever
the others do, because shares only grow while other flows stop. So all such links are settled at once. A step takes
O(hops); the number of steps is the depth of the bottlenecks: links that are full only because another one was before.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

EQUAL = 1e-9
"""Shares that differ by less are equal: they are sums of the same numbers in another order."""


class Uses(NamedTuple):
    """Which flow uses which link, and how often: three arrays of the same length. A pair may come several times."""

    flow: Numbers
    link: Numbers
    times: Floats


def max_min_rates(capacities: Floats, uses: Uses, ceilings: Floats) -> Floats:
    """The rate of each flow, in the unit of `capacities`.

    `ceilings` has the highest rate that each flow can reach by itself, `inf` where only links limit it. Every flow
    needs a ceiling or a link.
    """
    flow, link, times = uses
    rates = np.zeros(len(ceilings))
    grows = np.ones(len(ceilings), dtype=bool)
    left = capacities.astype(np.float64)
    while grows.any():
        hops = np.bincount(link, times, len(left))
        share = np.divide(left, hops, out=np.full(len(left), np.inf), where=hops > 0)
        reach = ceilings.copy()
        np.minimum.at(reach, flow, share[link])
        is_elsewhere = share[link] > reach[flow] * (1 + EQUAL)
        is_bottleneck = np.bincount(link[is_elsewhere], minlength=len(left)) == 0
        stops = grows & (reach == ceilings)
        stops[flow[is_bottleneck[link]]] = True
        rates[stops] = reach[stops]
        grows &= ~stops
        ends = stops[flow]
        left -= np.bincount(link[ends], times[ends] * rates[flow[ends]], len(left))
        left = left.clip(min=0.0)
        flow, link, times = flow[~ends], link[~ends], times[~ends]
    return rates
