"""One round of a sweep while it goes on: the groups that wait for their nodes, and those that live."""

from collections.abc import Iterable

from muster_coordinator.model.sweep_records import GroupState
from muster_coordinator.sweeps.formation import Formation
from muster_coordinator.sweeps.group import Group


class Round:
    """A round. Every node that it has `used` is, or was, in one of its groups."""

    def __init__(self, formations: Iterable[Formation] = ()) -> None:
        self.waiting = list(formations)
        self.has_begun = False
        self.live: dict[str, Group] = {}
        self.used = {node for formation in self.waiting for node in formation.members}
        self._formations: dict[str, Formation] = {}

    @property
    def is_over(self) -> bool:
        """Whether nothing of it waits or lives."""
        return not self.waiting and not self.live

    @property
    def nodes_in_groups(self) -> int:
        """How many nodes are in groups now."""
        return sum(len(group.members) for group in self.live.values())

    @property
    def nodes_invited(self) -> int:
        """How many nodes are in groups of which not all members have answered the invitation."""
        return sum(len(group.members) for group in self.live.values() if group.state is GroupState.FORMING)

    def begin(self, group: Group, formation: Formation) -> None:
        """Notes that a group that has waited is being formed."""
        self.waiting.remove(formation)
        self.has_begun = True
        self.live[group.id] = group
        self._formations[group.id] = formation

    def end(self, group: Group) -> Formation:
        """Notes that a group has ended; answers how it was to be formed."""
        del self.live[group.id]
        return self._formations.pop(group.id)

    def wait(self, formation: Formation) -> None:
        """Lets a group that could not be formed wait to be formed in another way."""
        self.waiting.append(formation)
        self.used.update(formation.members)
