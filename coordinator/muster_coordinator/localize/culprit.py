"""What can be at fault, and how sure one may be of it."""

import math
from dataclasses import dataclass
from enum import StrEnum

from muster_coordinator.localize.trial import Trial

SOFT_DOUBT, HARD_DOUBT = 0.5, 0.2
"""What each bad run leaves of the doubt, the second where its evidence is hard."""


class Part(StrEnum):
    """What can be at fault: a path lies between leaves, a link between two nodes."""

    NODE = "node"
    RAIL = "rail"
    NODE_LINK = "node_link"
    LEAF = "leaf"
    PATH = "path"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Culprit:
    """A part that is at fault. `of` names one node, one leaf, or the ends of a path or link; `rails` those of the node.

    `trials` speak against it. `slow` says that it works but is slow, `intermittent` that it was seen to work well too.
    """

    part: Part
    of: tuple[str, ...]
    trials: tuple[Trial, ...]
    slow: bool
    rails: tuple[int, ...] = ()
    intermittent: bool = False

    @property
    def confidence(self) -> float:
        """From 0 to 1."""
        return round(1 - math.prod(HARD_DOUBT if trial.hard else SOFT_DOUBT for trial in self.trials), 3)
