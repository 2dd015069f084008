"""The runs of one node in the record of a sweep, and the faulty parts that it depends on."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from muster.model import Topology
from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode, SweepRecord
from muster_coordinator.views.sweeps.amounts import Amounts, amounts_of
from muster_coordinator.views.sweeps.naming import fabric, names
from muster_coordinator.views.sweeps.runs import RunInRound, runs_of

_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class CaseFile:
    """Everything in the complete `record` about `node`. `places` are the positions of nodes."""

    record: SweepRecord
    node: str
    places: Mapping[str, Topology]

    @cached_property
    def amounts(self) -> Amounts:
        return amounts_of(self.record, self.places)

    @cached_property
    def runs(self) -> tuple[RunInRound, ...]:
        """Every group of the node."""
        return tuple(run for run in runs_of(self.record) if self.node in run.group.members)

    @cached_property
    def bad_runs(self) -> tuple[RunInRound, ...]:
        """The runs that count against the node and that nothing else explains."""
        return tuple(run for run in self.runs if self.node in run.charged and {*self.culprits(run)} <= {self.node})

    @cached_property
    def conviction(self) -> FailedNode | None:
        return next((failed for failed in self.record.failed_nodes if failed.node == self.node), None)

    @cached_property
    def links(self) -> tuple[FailedLink, ...]:
        """The faulty links of the node."""
        return tuple(link for link in self.record.failed_links if self.node in link.between)

    @cached_property
    def failed_fabric(self) -> tuple[FailedFabric, ...]:
        """The node's leaf, if it is faulty, and the faulty paths from there."""
        leaf = self.places.get(self.node, Topology()).leaf
        return tuple(part for part in self.record.failed_fabric if leaf in part.leaves)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes that name the node, except those about another node, and why it could not take part."""
        others = {*self.record.inconclusive} - {self.node}
        named = (note for note in self.record.notes if self.node in note and self.node in _NAME.findall(note))
        found = [note for note in named if note.partition(": ")[0] not in others]
        absent = self.record.absent.get(self.node)
        if absent is not None and not any(absent in note for note in found):
            found.append(f"{self.node} took no part: {absent}")
        return tuple(found)

    @cached_property
    def proofs(self) -> Mapping[str, RunInRound]:
        """For each node, the first run with others that it passed without this node."""
        found: dict[str, RunInRound] = {}
        for run in runs_of(self.record):
            if run.passed and self.node not in run.group.members and len(run.group.members) > 1:
                for member in run.group.members:
                    found.setdefault(member, run)
        return found

    def culprits(self, run: RunInRound) -> Iterator[str]:
        """The explanation of a bad run: nodes whose ranks crashed, or the faulty parts that the run used."""
        members = frozenset(run.group.members)
        if run.charged < members:
            yield from (node for node in run.group.members if node in run.charged)
            return
        leaves = Counter(self.places[node].leaf for node in members if node in self.places)
        yield from (failed.node for failed in self.record.failed_nodes if failed.node in members)
        links = (failed.between for failed in self.record.failed_links)
        yield from (f"link {' - '.join(between)}" for between in links if members.issuperset(between))
        yield from (fabric(part) for part in self.record.failed_fabric if leaves >= Counter(part.leaves))

    def how(self, run: RunInRound, node: str) -> str:
        """A run of `node` in words: the other members, the result, and the round."""
        others = run.others(node)
        company = f"with {names(others)}" if others else "alone"
        reached = "" if run.group.objective is None else f" at {self.amounts.words(run.group.objective)}"
        return f"{company}{reached} in round {run.round}"
