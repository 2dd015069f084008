"""The track records of all nodes that were bad for no known reason, in this and earlier sweeps with the same check.

Which runs count: those since the last conviction of the node; of bad runs with one partner, or across one path, the
latest; none with a node that was convicted. All records of n suspects take time in proportion to n, times their runs.
"""

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.prior import PastSweep
from muster_coordinator.localize.likelihood.chance import EXPECTED_RUNS, SLOW_BY_CHANCE
from muster_coordinator.localize.likelihood.track_record import Partners, PastRuns, TrackRecord

HALF_LIFE_S = 14 * 86_400.0
"""After this time a run counts half. Within weeks drivers, cables and nodes are changed, often without a note. With a
sweep each night about twenty sweeps count, with one each week three or four: what an intermittent fault needs."""

MOST_AGE_S = 4 * HALF_LIFE_S
"""Age from which a sweep does not count: its runs would count a sixteenth."""

OPEN = 1.0
"""Ratio from which a suspicion is open. One bad run makes about 35, and leaves less than 1 after six good ones."""

RECURS = 20.0
"""Ratio from which a node hardly was bad by chance: more than one bad run among several."""

FEWEST_ALIKE, MOST_OPEN = 3, 0.25
"""Suspects have something in common if they are at least this number and half of a leaf, or more than this share of all
nodes. Two suspects are mostly the two members of one bad pair."""

STANDS_OUT = 2.0
"""A leaf is bad if this many times as large a share of its nodes is suspected as of the others. If each bad run has one
member there, no more than a third of the others is suspected where there are four leaves."""


@dataclass(frozen=True)
class TrackRecords:
    """The track records of the nodes of a `fabric` in these `sweeps`, the latest first, as they count `now`."""

    sweeps: tuple[PastSweep, ...]
    now: float
    fabric: KnownFabric

    @cached_property
    def strongest(self) -> tuple[TrackRecord, ...]:
        """The track records of all nodes that were bad, the highest ratio first."""
        nodes = dict.fromkeys(node for sweep in self.sweeps for node in sweep.suspicions if node in self.fabric.sites)
        found = [record for node in nodes if (record := self.of(node)) is not None]
        return tuple(sorted(found, key=lambda record: -record.ratio))

    @cached_property
    def suspects(self) -> tuple[TrackRecord, ...]:
        """The track records with an open suspicion, the highest ratio first; none if they have a common cause."""
        return () if self.have_common_cause else self._open

    @cached_property
    def _open(self) -> tuple[TrackRecord, ...]:
        return tuple(record for record in self.strongest if record.ratio >= OPEN)

    @cached_property
    def have_common_cause(self) -> bool:
        """Whether a part that nodes share rather than the nodes themselves is bad now and then.

        Prevents: leaves are unknown, and the switch of four nodes is bad half of the time.
        """
        recurring = (record.node for record in self.strongest if record.ratio >= RECURS)
        recur = sum(self.fabric.sites[node].leaf is None for node in recurring)
        return bool(self.of_bad_leaves) or recur >= FEWEST_ALIKE or len(self._open) > MOST_OPEN * len(self.fabric.sites)

    @cached_property
    def of_bad_leaves(self) -> frozenset[str]:
        """The nodes of leaves most of whose nodes are suspected.

        Prevents: the switch of leaf a is bad half of the time. Each of its nodes is bad in half of the sweeps, and so
        is a healthy node that stands there but is labelled otherwise.
        """
        suspected = {record.node for record in self._open}
        leaves = map(frozenset, self.fabric.leaves.values())
        return frozenset().union(*(nodes for nodes in leaves if self._is_bad_leaf(nodes, suspected)))

    def _is_bad_leaf(self, nodes: frozenset[str], suspected: Set[str]) -> bool:
        """Whether most of the nodes at a leaf are suspected, and far fewer of the others.

        Prevents: the links between leaves were shared by too many groups yesterday, so half of all nodes is suspected.
        Today a4 fails with everyone. Its bad link would be excused.
        """
        here, elsewhere = len(suspected & nodes), len(suspected - nodes)
        others = len(self.fabric.sites) - len(nodes)
        return here >= max(FEWEST_ALIKE, len(nodes) / 2) and here * others >= STANDS_OUT * elsewhere * len(nodes)

    def of(self, node: str, explained: Set[str] = frozenset()) -> TrackRecord | None:
        """The track record of a node; None if no bad run counts. Runs with `explained` nodes do not count."""
        sweeps = tuple(self._runs_of(node, explained | self._convicted))
        return TrackRecord(node, sweeps, self._at_random(node)) if any(runs.bad for runs in sweeps) else None

    def _runs_of(self, node: str, explained: Set[str]) -> Iterator[PastRuns]:
        met = set(explained)
        for sweep in self._since_conviction(node):
            weight = 0.5 ** (max(self.now - sweep.ended_at, 0.0) / HALF_LIFE_S)
            if (suspicion := sweep.suspicions.get(node)) is not None:
                bad = tuple(self._that_count(node, suspicion.bad, met))
                yield PastRuns(sweep, weight, bad, suspicion.good, suspicion.good_alone)
            elif node in sweep.cleared:
                yield PastRuns(sweep, weight, (), sweep.passes, 0)

    def _since_conviction(self, node: str) -> Iterator[PastSweep]:
        """The sweeps since the last one that convicted the node: it may have been repaired after that."""
        for sweep in self.sweeps:
            if node in sweep.convicted:
                return
            yield sweep

    def _that_count(self, node: str, bad: Iterable[Partners], met: set[str]) -> Iterator[Partners]:
        """Of the bad runs with one partner, or across one path between leaves, the latest. Adds to what is `met`.

        Prevents: b is one of four nodes and bad now and then, and a meets it in every third sweep. Or the path between
        their leaves is, and a crosses it in every third sweep.
        """
        for partners in bad:
            new = {*partners, *(f"to {leaf}" for leaf in self._leaves_across(node, partners))}
            if met.isdisjoint(new):
                met |= new
                yield partners

    def _leaves_across(self, node: str, partners: Partners) -> frozenset[str | None]:
        """The other leaves at which the partners stand; nothing is known of nodes that are no longer there."""
        known = [partner for partner in partners if partner in self.fabric.sites]
        return self.fabric.leaves_of(known) - self.fabric.leaves_of((node,)) - {None}

    @cached_property
    def _convicted(self) -> frozenset[str]:
        """The nodes that any of the sweeps convicted: they explain their bad runs with others."""
        return frozenset(node for sweep in self.sweeps for node in sweep.convicted)

    def _at_random(self, node: str) -> float:
        """Share of the runs of nodes that were bad for no known reason, in groups without this node.

        Prevents: stragglers make one run in twenty slow. A node that was slow three times is nothing special then.
        """
        own = [partners for sweep in self.sweeps if node in sweep.suspicions for partners in sweep.suspicions[node].bad]
        bad, runs = self._totals
        others = max(bad - sum(1 + len(partners) for partners in own), 0)
        return max(SLOW_BY_CHANCE, (EXPECTED_RUNS * SLOW_BY_CHANCE + others) / (EXPECTED_RUNS + runs))

    @cached_property
    def _totals(self) -> tuple[int, int]:
        """The number of bad runs of all nodes, and of all runs."""
        bad = sum(len(suspicion.bad) for sweep in self.sweeps for suspicion in sweep.suspicions.values())
        return bad, bad + sum(sweep.passes * len(sweep.cleared) for sweep in self.sweeps)
