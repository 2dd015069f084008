"""A forecast as text: the groups and cost of a sweep."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from muster.nouns import count
from muster_coordinator.sweeps.forecast import Cost, Forecast, ForecastGroup
from muster_coordinator.views.sweeps.naming import by_value, indented, names

MOST_GROUPS = 20
"""Maximum number of groups that are listed. Further groups are only counted; the JSON has them all."""


def forecast_text(forecast: Forecast) -> str:
    """The groups of round 1 with their reasons, the range of the cost, and warnings."""
    return "\n".join(
        (
            f"would sweep {count(len(forecast.nodes), 'node')} with {forecast.check}, strategy {forecast.strategy}",
            *_absent(forecast),
            *_round(forecast),
            f"in all at least {_cost(forecast.least)}, if everything passes",
            f"at most {_cost(forecast.most)}",
            f"a group is expected to take {forecast.group_s:.0f} s with its start; a run that takes longer than "
            f"{forecast.timeout_s:.0f} s is ended",
            *(f"note: {warning}" for warning in forecast.warnings),
        )
    )


def _absent(forecast: Forecast) -> Iterator[str]:
    for why, nodes in by_value(forecast.absent).items():
        yield f"left out: {names(nodes)} ({why})"


def _round(forecast: Forecast) -> Iterator[str]:
    waves = max((group.wave for group in forecast.groups), default=0)
    took = f"{forecast.first.node_s:.0f} node-seconds, {forecast.first.duration_s:.0f} s"
    yield f"round 1: {count(len(forecast.groups), 'group')} in {count(waves, 'wave')}, {took}"
    shown = forecast.groups[:MOST_GROUPS]
    for reason, groups in groupby(shown, key=lambda group: group.reason):
        yield from indented([reason])
        yield from indented(indented(_members(groups)))
    if hidden := len(forecast.groups) - len(shown):
        yield from indented([f"and {count(hidden, 'other group')}"])
    if forecast.left_over:
        yield from indented([f"not in any group: {names(forecast.left_over)}"])


def _members(groups: Iterable[ForecastGroup]) -> Iterator[str]:
    for group in groups:
        yield f"wave {group.wave}: {names(group.members)}{', by rail' if group.by_rail else ''}"


def _cost(cost: Cost) -> str:
    return f"{count(cost.rounds, 'round')}, {cost.node_s:.0f} node-seconds and {cost.duration_s:.0f} s"
