"""What always has to hold in a simulated fleet, looked at after every step."""

from tests.coordinator.recount import assert_counts

from muster.wire.messages import (
    Join,
)
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    FleetCommand,
    FleetEvent,
    GroupReplySeen,
    SendCommand,
)
from muster_coordinator.model.sweep_records import GroupRecord, GroupState, SweepRecord
from muster_coordinator.sweeps.sweep import Sweep

COUNTED_EVERY = 25
"""Minimum number of steps between two counts of all nodes, which take longer than a step."""


class Promises:
    """What always holds, over all leaders of a fleet."""

    def __init__(self) -> None:
        self._invited: dict[str, int] = {}  # by group, in which step
        self._ended_groups: dict[str, GroupRecord] = {}
        self._ended_sweeps: dict[str, SweepRecord] = {}
        self._groups: list[list[tuple[str, ...]]] = []  # by sweep, the members of each group at the last step
        self._steps = 0

    def about(self, event: FleetEvent, fleet: Fleet) -> SweepRecord | None:
        """What a message about a group that has ended must not change; None for any other."""
        if not isinstance(event, GroupReplySeen) or event.message.group not in self._ended_groups:
            return None
        was_missing = event.message.node in fleet._sweeps._unheard  # then groups can be formed because it is back
        return None if was_missing else fleet._sweeps.record(event.message.group.rpartition("-")[0])

    def check(self, fleet: Fleet, commands: list[FleetCommand], now: float) -> None:
        """After a step of the fleet."""
        self._steps += 1
        # In a large fleet less often: a count looks at each node, and what it once misses stays missed.
        if self._steps % max(COUNTED_EVERY, len(fleet.names)) == 0:
            assert_counts(fleet, now)
        new = self._formed(commands)
        sweeps = list(fleet._sweeps.running.values())
        groups = [[group.members for group in sweep.live.values()] for sweep in sweeps]
        if groups != self._groups:  # most steps form and end none
            self._groups = groups
            members = [node for each in groups for group in each for node in group]
            assert len(set(members)) == len(members), "a node is in two groups"
            for sweep in sweeps:
                self._check_limit(sweep)
        if new:
            self._check_priority(sweeps, new)

    def check_saved_group(self, group: GroupRecord) -> None:
        if group.state is GroupState.ENDED:
            facts = group.model_copy(update={"verdict": None, "slow": None})  # the sweep may judge it again
            assert self._ended_groups.setdefault(group.id, facts) == facts, "an ended group has changed"

    def check_saved_sweep(self, sweep: SweepRecord) -> None:
        assert sweep.id not in self._ended_sweeps, "an ended sweep was saved again"
        if sweep.ended_at is not None:
            self._ended_sweeps[sweep.id] = sweep

    def _formed(self, commands: list[FleetCommand]) -> set[str]:
        """The groups that this step has begun."""
        joins = [it.command for it in commands if isinstance(it, SendCommand) and isinstance(it.command, Join)]
        for join in joins:
            assert self._invited.setdefault(join.group, self._steps) == self._steps, "a group was formed twice"
        return {join.group for join in joins}

    def _check_limit(self, sweep: Sweep) -> None:
        limit, live, taken = sweep.plan.limits.nodes, sweep.live, _members(sweep)
        assert limit is None or taken <= limit or len(live) == 1, f"{taken} nodes in groups, {limit} were allowed"

    def _check_priority(self, sweeps: list[Sweep], new: set[str]) -> None:
        for urgent in sweeps:
            wanted = self._wanted(urgent)
            for other in sweeps:
                if other.plan.priority < urgent.plan.priority:
                    taken = {node for it in new & other.live.keys() for node in other.live[it].members}
                    assert not taken & wanted, "a sweep was given nodes for which a more urgent one waits"

    def _wanted(self, sweep: Sweep) -> set[str]:
        """The nodes that a sweep waits for and could use now."""
        wanted: set[str] = set()
        limit, taken = sweep.plan.limits.nodes, _members(sweep)
        for formation in [] if sweep._round is None else sweep._round.waiting:
            if limit is not None and taken and taken + len(formation.members) > limit:
                break
            wanted.update(formation.members)
        return wanted


def _members(sweep: Sweep) -> int:
    """How many nodes are in the groups of a sweep."""
    return sum(len(group.members) for group in sweep.live.values())
