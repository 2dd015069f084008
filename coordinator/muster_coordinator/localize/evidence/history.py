"""The runs of one node."""

from dataclasses import dataclass, field

from muster_coordinator.model.probes import GroupRun

MOST_SUSPECTED = 3
"""Up to this size, a crash makes all members suspects: a pair, or the group of three in an odd fleet."""


@dataclass(slots=True)
class NodeHistory:
    """The runs of one node, oldest first; `void` ones say nothing.

    `own_failures` are the bad runs in which the node was alone or its own ranks crashed. `unclear` are the good runs
    that reached so little that they may hide a fault.
    """

    good: list[GroupRun] = field(default_factory=list)
    bad: list[GroupRun] = field(default_factory=list)
    own_failures: list[GroupRun] = field(default_factory=list)
    void: list[GroupRun] = field(default_factory=list)
    unclear: list[GroupRun] = field(default_factory=list)

    @property
    def has_shown_something(self) -> bool:
        """Whether it had a run that was good or bad."""
        return bool(self.good or self.bad)

    @property
    def times_clear(self) -> int:
        """How many good runs show that the node is healthy."""
        return len(self.good) - len(self.unclear)

    @property
    def good_together(self) -> list[GroupRun]:
        return [run for run in self.good if len(run.members) > 1]

    @property
    def bad_together(self) -> list[GroupRun]:
        return [run for run in self.bad if len(run.members) > 1]

    @property
    def times_alone(self) -> int:
        """How many runs the node was alone in, with any outcome."""
        return sum(len(run.members) == 1 for run in (*self.good, *self.bad, *self.void))

    @property
    def passed_alone(self) -> bool:
        return any(len(run.members) == 1 for run in self.good)

    @property
    def failed_alone(self) -> bool:
        """Whether the node had the verdict FAIL alone, for another reason than a crash."""
        return any(run.hard and not run.crashed and len(run.members) == 1 for run in self.own_failures)

    @property
    def bad_alone(self) -> bool:
        """Whether the node was bad in a run alone: failed, crashed or slow."""
        return any(len(run.members) == 1 for run in self.own_failures)

    @property
    def best_together(self) -> float:
        """The highest objective of a good run with others; 0 if none was measured."""
        return max((run.objective or 0.0 for run in self.good_together), default=0.0)


def suspected_members(run: GroupRun) -> tuple[str, ...]:
    """The members that a bad run makes suspects.

    In a small group, each member may have made the ranks of another crash: n1 sends nonsense, and the ranks of n2
    crash. In a large group that is unlikely for each member, and to suspect all 32 would cost a run of each.
    """
    if not run.crashed or len(run.members) <= MOST_SUSPECTED:
        return run.members
    return tuple(member for member in run.members if member in run.crashed)
