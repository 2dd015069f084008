"""The parts that can be at fault, and the confidence of a conviction."""

import math
from dataclasses import dataclass
from enum import StrEnum

from muster_coordinator.model.probes import GroupRun

SOFT_DOUBT, HARD_DOUBT = 0.5, 0.2
"""The doubt that remains after each bad run, as a factor; the second if ranks crashed or a verdict was FAIL."""


class Part(StrEnum):
    """The kinds of parts that can be at fault. A path lies between leaves, a link between nodes with unknown leaves."""

    NODE = "node"
    RAIL = "rail"
    NODE_LINK = "node_link"
    LEAF = "leaf"
    PATH = "path"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Culprit:
    """A part that is at fault. `of` names one node, one leaf, or the ends of a path or link; `rails` those of the node.

    `runs` are the evidence against it. `slow`: it works but is slow. `intermittent`: it also had good runs.
    """

    part: Part
    of: tuple[str, ...]
    runs: tuple[GroupRun, ...]
    slow: bool
    rails: tuple[int, ...] = ()
    intermittent: bool = False

    @property
    def confidence(self) -> float:
        """From 0 to 1. Example: two slow runs and a crash leave 0.5 x 0.5 x 0.2 of the doubt, so it is 0.95."""
        return round(1 - math.prod(HARD_DOUBT if run.hard else SOFT_DOUBT for run in self.runs), 3)
