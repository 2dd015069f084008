"""How many bad runs it takes until faults that come and go elsewhere do not explain them.

The more nodes there are, the more often such faults meet where they look like another one that stays.
"""

import math
from collections.abc import Sequence

from muster_coordinator.localize.trial import Trial

SPOILT = 0.015
"""Share of the runs that a node spoils by chance, where one in twenty has a fault that shows in three runs of ten."""

MISTAKES = 0.001
"""In so many sweeps of such a fleet, chance may bring about as many bad runs as are asked for."""

ALIKE = 1.5
"""What one fault that stays leaves differs by noise only; as much lies between 20 % too high and 20 % too low."""


def partners_beyond_chance(nodes: int) -> int:
    """With how many partners a node has to fail, in a fleet of so many, until they are not to blame."""
    return _beyond(nodes, SPOILT)


def runs_beyond_chance(nodes: int) -> int:
    """How often a path has to be bad, in a fleet of so many `nodes`, until those at its two ends are not to blame."""
    return _beyond(nodes, 2 * SPOILT)


def are_alike(bad: Sequence[Trial]) -> bool:
    """Whether all runs broke, or came to the same, as they do when one fault that stays is behind them."""
    reached = [trial.objective or 0.0 for trial in bad]
    return max(reached) <= ALIKE * min(reached)


def _beyond(nodes: int, spoilt: float) -> int:
    return math.ceil(math.log(nodes / MISTAKES) / -math.log(spoilt))
