"""The rates of flows: cases by hand, cases by SimGrid, and what max-min fairness is by definition."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import cases
from tests.lots import examples

np = pytest.importorskip("numpy")

from benchmarks.fabric.flows import Uses, max_min_rates  # noqa: E402  it needs numpy

Links = tuple[float, ...]
Routes = tuple[dict[int, int], ...]
"""For each flow, how often it uses a link."""

HAND = {
    "one flow takes all": ((10,), ({0: 1},), (None,), (10,)),
    "equal parts": ((12,), ({0: 1}, {0: 1}, {0: 1}), (None,) * 3, (4, 4, 4)),
    "the rest of a link is for those who can use it": (
        (10, 4),
        ({0: 1}, {0: 1, 1: 1}, {1: 1}),
        (None,) * 3,
        (8, 2, 2),
    ),
    "links in a chain": (
        (1, 1, 1),
        ({0: 1}, {0: 1, 1: 1}, {0: 1}, {1: 1, 2: 1}, {2: 1}),
        (None,) * 5,
        (1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2),
    ),
    "a parking lot": ((6, 6, 6), ({0: 1, 1: 1, 2: 1}, {0: 1}, {1: 1}, {2: 1}), (None,) * 4, (3, 3, 3, 3)),
    "bottlenecks in a row": (
        (2, 6, 12, 30),
        ({0: 1}, {0: 1, 1: 1}, {1: 1, 2: 1}, {2: 1, 3: 1}, {3: 1}),
        (None,) * 5,
        (1, 1, 5, 7, 23),
    ),
    "two hops of one flow count twice": ((9,), ({0: 2}, {0: 1}), (None,) * 2, (3, 3)),
    "a ceiling leaves more for others": ((10,), ({0: 1}, {0: 1}), (3, None), (3, 7)),
    "a ceiling out of reach changes nothing": ((10,), ({0: 1}, {0: 1}), (6, None), (5, 5)),
    "nothing goes over a dead link": ((0, 5), ({0: 1, 1: 1}, {1: 1}), (None,) * 2, (0, 5)),
    "without links only the ceiling counts": ((1,), ({}, {0: 1}), (7, None), (7, 1)),
}
"""Capacities, routes, ceilings, rates."""

SIMGRID = [
    (
        (43, 36, 34, 46, 23, 48, 56),
        ((0, 2, 3), (2,), (0, 2, 5), (2, 4, 6), (5,), (3,), (0, 1), (1, 6)),
        (2, None, 3, 10, None, 3, None, None),
        (2, 19, 3, 10, 45, 3, 18, 18),
    ),
    (
        (51, 50, 55, 14, 30, 44),
        ((0, 4), (0, 2), (0, 3, 4), (0, 2, 3), (2,), (5,), (0, 2, 3), (2, 4, 5), (1,)),
        (7, None, None, None, 11, None, None, None, None),
        (7, 17.333333, 4.666667, 4.666667, 11, 26.666667, 4.666667, 17.333333, 50),
    ),
    (
        (36, 38, 31, 39, 4, 21, 25),
        ((0, 6), (0,), (4, 5), (5,), (1, 6), (2, 5), (2,), (0, 4, 6)),
        (None, 8, None, 6, None, None, None, 3),
        (11.5, 8, 2, 6, 11.5, 13, 18, 2),
    ),
    (
        (57, 25, 8, 10, 5, 47, 28),
        ((0, 1, 5), (1, 4), (0, 4), (6,), (3,), (2, 5, 6), (1, 5), (0,)),
        (None, None, None, 3, None, None, None, None),
        (11.25, 2.5, 2.5, 3, 10, 8, 11.25, 43.25),
    ),
]
"""The same, by SimGrid 3.32 (Debian 12) with the model CM02, without latency and cross-traffic; a ceiling is a link."""


def rates_of(capacities: Links, routes: Routes, ceilings: tuple) -> list[float]:
    """The rates as the simulation gets them."""
    hops = [(flow, link, times) for flow, route in enumerate(routes) for link, times in route.items()]
    flow, link, times = (np.array(column) for column in zip(*hops, strict=True))
    limits = np.array([np.inf if ceiling is None else float(ceiling) for ceiling in ceilings])
    return [*max_min_rates(np.array(capacities, dtype=float), Uses(flow, link, times.astype(float)), limits)]


def loads(capacities: Links, routes: Routes, rates: list) -> list:
    """What each link carries."""
    uses = [(link, times * rates[flow]) for flow, route in enumerate(routes) for link, times in route.items()]
    return [sum(load for used, load in uses if used == link) for link in range(len(capacities))]


def grown(capacities: Links, routes: Routes, ceilings: tuple) -> list[Fraction]:
    """The same by the definition of progressive filling, one event at a time, in fractions."""
    rates = [Fraction(0)] * len(routes)
    grows = set(range(len(routes)))
    while grows:
        used = [
            sum(route.get(link, 0) * rates[flow] for flow, route in enumerate(routes))
            for link in range(len(capacities))
        ]
        width = [sum(routes[flow].get(link, 0) for flow in grows) for link in range(len(capacities))]
        room = [(Fraction(capacities[n]) - used[n]) / width[n] for n in range(len(capacities)) if width[n]]
        room += [Fraction(ceilings[flow]) - rates[flow] for flow in grows if ceilings[flow] is not None]
        for flow in grows:
            rates[flow] += min(room)
        full = {link for link, load in enumerate(loads(capacities, routes, rates)) if load == capacities[link]}
        grows = {flow for flow in grows if rates[flow] != ceilings[flow] and full.isdisjoint(routes[flow])}
    return rates


@st.composite
def networks(draw):
    """Small networks: capacities, routes with up to three uses of a link, ceilings."""
    links = draw(st.integers(1, 7))
    capacities = tuple(draw(st.lists(st.integers(0, 40), min_size=links, max_size=links)))
    route = st.dictionaries(st.integers(0, links - 1), st.integers(1, 3), min_size=1, max_size=links)
    routes = tuple(draw(st.lists(route, min_size=1, max_size=9)))
    ceiling = st.none() | st.integers(1, 20)
    return capacities, routes, tuple(draw(st.lists(ceiling, min_size=len(routes), max_size=len(routes))))


@cases("capacities, routes, ceilings, rates", HAND.values(), ids=HAND)
def test_cases_by_hand(capacities, routes, ceilings, rates) -> None:
    """Small networks of which the rates are obvious."""
    assert rates_of(capacities, routes, ceilings) == pytest.approx(rates)


@cases("capacities, routes, ceilings, rates", SIMGRID)
def test_simgrid_gets_the_same(capacities, routes, ceilings, rates) -> None:
    """Random networks, solved by another program; a route uses each of its links once."""
    once = tuple(dict.fromkeys(route, 1) for route in routes)
    assert rates_of(capacities, once, ceilings) == pytest.approx(rates, abs=1e-5)


@settings(max_examples=examples(100))
@given(networks())
def test_growing_step_by_step_gets_the_same(network) -> None:
    """Settling many bottlenecks at once is only quicker."""
    assert rates_of(*network) == pytest.approx([float(rate) for rate in grown(*network)])


@settings(max_examples=examples(100))
@given(networks())
def test_every_flow_has_a_bottleneck(network) -> None:
    """No link carries more than it can; each flow is at its ceiling, or the fastest on a link that is full."""
    capacities, routes, ceilings = network
    rates = rates_of(*network)
    used = [
        sum(route.get(link, 0) * rates[flow] for flow, route in enumerate(routes)) for link in range(len(capacities))
    ]
    assert all(load <= capacity + 1e-6 for load, capacity in zip(used, capacities, strict=True))
    fastest = [
        max((rates[f] for f, route in enumerate(routes) if link in route), default=0) for link in range(len(used))
    ]
    full = {link for link, load in enumerate(used) if load > capacities[link] - 1e-6}
    for flow, route in enumerate(routes):
        at_ceiling = ceilings[flow] is not None and rates[flow] > ceilings[flow] - 1e-6
        assert at_ceiling or any(rates[flow] > fastest[link] - 1e-6 for link in full & route.keys())


@settings(max_examples=examples(100))
@given(networks(), st.integers(0, 6), st.integers(1, 30))
def test_more_capacity_never_slows_the_slowest(network, link: int, more: int) -> None:
    """A single flow may get less, because others can grow beside it; the slowest flow gets no less."""
    capacities, routes, ceilings = network
    wider = tuple(capacity + more * (number == link) for number, capacity in enumerate(capacities))
    assert min(rates_of(wider, routes, ceilings)) >= min(rates_of(*network)) - 1e-9
