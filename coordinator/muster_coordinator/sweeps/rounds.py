"""The rounds of a sweep: the one that goes on (`Round`), and the records of all of them (`RoundLog`)."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from muster.model import Verdict
from muster_coordinator.model.sweep_records import GroupRecord, GroupState, RoundRecord, SweepRecord
from muster_coordinator.sweeps.formation import Formation
from muster_coordinator.sweeps.group import Group
from muster_coordinator.sweeps.member import verdict_of


class Round:
    """The running round of a sweep of `nodes`. The `unused` ones, in their order, were in none of its groups.

    `waiting` are the groups that wait, in their order. `live_together` counts the live groups of several nodes,
    `nodes_in_groups` the nodes that are in groups now, `nodes_invited` those in groups that still wait for answers to
    their invitations. No node is in two groups.
    """

    def __init__(self, formations: Iterable[Formation] = (), nodes: Iterable[str] = ()) -> None:
        self.waiting: dict[Formation, None] = {}
        self.has_begun = False
        self.live: dict[str, Group] = {}
        self.unused = dict.fromkeys(nodes)
        self._waiting_with: dict[str, Formation] = {}
        self._live_with: dict[str, Group] = {}
        self.live_together = self.nodes_in_groups = self.nodes_invited = 0
        self._formations: dict[str, Formation] = {}
        self._invited: set[str] = set()  # the ids of the groups that are being formed
        for formation in formations:
            self.wait(formation)

    @property
    def is_over(self) -> bool:
        """Whether all its groups have ended."""
        return not self.waiting and not self.live

    @property
    def waiting_nodes(self) -> Set[str]:
        """The nodes of the groups that wait."""
        return self._waiting_with.keys()

    def waiting_with(self, node: str) -> Formation | None:
        """The waiting group with this node."""
        return self._waiting_with.get(node)

    def live_with(self, node: str) -> Group | None:
        """The group that this node is in now."""
        return self._live_with.get(node)

    def postpone_deadlines(self, by_s: float) -> None:
        """Postpones the deadlines of all live groups, because the coordinator was late itself."""
        for group in self.live.values():
            group.postpone_deadline(by_s)

    def begin(self, group: Group, formation: Formation) -> None:
        """Notes that a waiting group is being formed."""
        self.drop(formation)
        self.has_begun = True
        self.live[group.id] = group
        self._live_with.update(dict.fromkeys(group.members, group))
        self._formations[group.id] = formation
        self._invited.add(group.id)
        self.live_together += len(group.members) > 1
        self.nodes_in_groups += len(group.members)
        self.nodes_invited += len(group.members)

    def note_answered(self, group: Group) -> None:
        """Notes the state of a group after an event: whether it still waits for answers."""
        if group.state is not GroupState.FORMING and group.id in self._invited:
            self._invited.remove(group.id)
            self.nodes_invited -= len(group.members)

    def end(self, group: Group) -> Formation:
        """Notes that a group has ended. Returns the formation that it began from."""
        del self.live[group.id]
        for node in group.members:
            del self._live_with[node]
        self.live_together -= len(group.members) > 1
        self.nodes_in_groups -= len(group.members)
        return self._formations.pop(group.id)

    def wait(self, formation: Formation) -> None:
        """Adds a group that waits."""
        self.waiting[formation] = None
        for node in formation.members:
            self._waiting_with[node] = formation
            self.unused.pop(node, None)

    def drop(self, formation: Formation) -> None:
        """Removes a group that waits."""
        del self.waiting[formation]
        for node in formation.members:
            del self._waiting_with[node]


@dataclass(slots=True)
class _Page:
    """One round: the ids of its groups in the order in which they were formed."""

    groups: list[str] = field(default_factory=list)
    learned: tuple[str, ...] = ()


class RoundLog:
    """The records of all groups of a sweep, and which of them changed since `changed` was called last."""

    def __init__(self) -> None:
        self._pages: list[_Page] = []
        self._live: dict[str, Group] = {}
        self._ended: dict[str, GroupRecord] = {}
        self._round_of: dict[str, int] = {}
        self._why_slow: Mapping[str, str] = {}
        self._changed: dict[str, None] = {}  # in order, and each once

    @property
    def has_changed(self) -> bool:
        """Whether any group has changed since `changed` was called last."""
        return bool(self._changed)

    def open_round(self) -> None:
        """Begins the next round."""
        self._pages.append(_Page())

    def close_round(self, learned: tuple[str, ...]) -> None:
        """Notes what the round changed about the diagnosis."""
        self._pages[-1].learned = learned

    def mark_slow(self, why_slow: Mapping[str, str]) -> None:
        """Notes which groups count as slow from now on, by id with the reason. No other group does."""
        changed = dict.fromkeys((*why_slow, *self._why_slow))
        self._changed.update((group, None) for group in changed if self._why_slow.get(group) != why_slow.get(group))
        self._why_slow = why_slow

    def begin(self, group: Group) -> None:
        """Notes a group that is being formed."""
        self._live[group.id] = group
        self._enter(group.id)

    def touch(self, group: Group) -> None:
        """Notes that a live group has changed."""
        self._changed[group.id] = None

    def end(self, record: GroupRecord) -> None:
        """Notes the final record of a group."""
        self._live.pop(record.id, None)
        self._ended[record.id] = record
        self._changed[record.id] = None

    def resume(self, stage: RoundRecord) -> None:
        """Restores a stored round whose groups have all ended."""
        self._pages.append(_Page(learned=stage.learned))
        for record in stage.groups:
            self._enter(record.id)
            self.end(_by_itself(record))

    def changed(self) -> Iterator[tuple[int, GroupRecord]]:
        """The groups that changed since the last call: the number of the round, and the record."""
        ids, self._changed = self._changed, {}
        return ((self._round_of[group], self._shown(group)) for group in ids)

    def wrong_clocks(self) -> dict[str, float]:
        """By node with a wrong clock, the seconds it was ahead of the coordinator's when it took part last."""
        places = (place for record in self._ended.values() for place in record.places)
        return {place.node: place.clock_ahead_s for place in places if place.clock_ahead_s is not None}

    def outline(self, *, waiting: int) -> tuple[RoundRecord, ...]:
        """Every round without its groups. In the last round, `waiting` groups wait."""
        rounds = [RoundRecord(number=number, learned=page.learned) for number, page in enumerate(self._pages, 1)]
        return (*rounds[:-1], *(last.model_copy(update={"waiting": waiting}) for last in rounds[-1:]))

    def complete(self, outline: SweepRecord) -> SweepRecord:
        """The record with the groups of every round."""
        rounds = (
            stage.model_copy(update={"groups": tuple(map(self._shown, page.groups))})
            for stage, page in zip(outline.rounds, self._pages, strict=True)
        )
        return outline.model_copy(update={"rounds": tuple(rounds)})

    def _enter(self, id: str) -> None:
        self._pages[-1].groups.append(id)
        self._round_of[id] = len(self._pages)
        self._changed[id] = None

    def _shown(self, id: str) -> GroupRecord:
        """A group as the API shows it: a group that counts as slow has failed."""
        record = self._ended[id] if id in self._ended else self._live[id].record()
        if (why := self._why_slow.get(id)) is None:
            return record
        return record.model_copy(update={"verdict": Verdict.FAIL, "slow": why})


def _by_itself(record: GroupRecord) -> GroupRecord:
    """A group as its members reported it, before it was compared with others."""
    verdict = verdict_of((place.verdict for place in record.places), record.ending)
    return record.model_copy(update={"verdict": verdict, "slow": None})
