"""Runs that tell whether a path is bad across which healthy nodes were bad together.

The idea: a path between leaves runs again with other nodes of its ends, because one of the first two may be bad. Other
groups that share its links, and work of others, make it slow for a while. So one path of a leaf is tried in a round,
with one pair at first, and later with half of the pairs that are missing.

Example: a4-c4 was slow, and both pass with others. Next, a7-c2 crosses the path a-c. It is slow again, and two more
pairs would convict the path. They cross it one after the other. Of 16,384 nodes, six are missing, and three cross it.

Takes time in proportion to the suspected paths, times the nodes at their ends.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.fabric import FEW_BESIDE, Path
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.planning.partners import PartnerPool
from muster_coordinator.localize.rules.path import QUIET_BESIDE
from muster_coordinator.model.probes import Probe

SINCE = "{} and {} show whether everything has become slower since {} and {} were bad together"
NEVER_CROSSED = "no group has crossed the path between leaves {} and {}"
PATH = "between {} and {} a run was bad although its nodes are healthy"
COMPARED = "{} was slow between {} and {}; with {} it is as slow if the uplinks of {} are too few"

MOST_COMPARED = 3
"""Quiet runs from a small leaf across other paths. Two that are fast are enough; one of three may be slow by chance."""


class PathRetests:
    """The retests after a `diagnosis`, with nodes of these `pools` that `is_free` for this round."""

    def __init__(
        self, diagnosis: Diagnosis, pools: Mapping[ComparedKind, PartnerPool], is_free: Callable[[str], bool]
    ) -> None:
        self._evidence = diagnosis.evidence
        self._hardware = diagnosis.evidence.hardware
        self._paths = diagnosis.paths
        self._are_links_busy = diagnosis.nodes.ratios.are_links_busy
        self._pools = pools
        self._is_free = is_free
        self.leaves_tried: set[str] = set()

    def due(self) -> Iterator[Probe]:
        """A retest, or more, of each suspected path. The caller adds each before it takes the next.

        Rule: links between nodes wait until no path between leaves is suspected. Prevents: the path a-c is bad, and
        five nodes of a have no label. Their links to leaf c run again and again, so no run across a-c is quiet.
        """
        paths = [path for path in self._paths.suspected if path.of_leaves] or self._paths.suspected
        for path in paths:
            if self._paths.lacks_control(path):
                yield from self._control(path)
            elif not self._is_turn_of(path):
                continue
            elif (leaf := self._paths.small_end(path)) is not None:
                yield from self._compare(path, leaf)
            else:
                met = self._paths.met_across(path)
                for _ in range(self._pairs_at_once(path, met)):
                    yield from self._retest(path, met)

    def never_crossed(self) -> Iterator[Probe]:
        """Pairs across the paths that no group has crossed, if they are so few that they hardly share links."""
        left = math.comb(len(self._evidence.fabric.leaves), 2) - len(self._evidence.crossed)
        for path in sorted(self._evidence.uncrossed) if left <= FEW_BESIDE + 1 else ():
            nodes = self._pair_across(path, set(), [frozenset({kind}) for kind in self._pools])
            if len(nodes) == 2:
                yield Probe(nodes, NEVER_CROSSED.format(*path.ends))

    def due_quietly(self) -> Iterator[Probe]:
        """For a round of no other groups: the paths that were bad often enough, but only beside many other groups."""
        paths = self._paths
        waiting = (
            path for path in paths.never_good if not paths.any_runs_missing(path) and paths.quiet_runs_missing(path)
        )
        for path in [*waiting][: QUIET_BESIDE + 1]:
            if self._is_turn_of(path):
                yield from self._retest(path, paths.met_across(path))

    def _is_turn_of(self, path: Path) -> bool:
        """Whether no other path of its leaves is tried in this round.

        Prevents: pairs across three healthy paths of small leaf c slow each other in each round, or others fill its
        links just then.
        """
        return not path.of_leaves or self.leaves_tried.isdisjoint(path.ends)

    def _pairs_at_once(self, path: Path, met: set[str]) -> int:
        """Half of the runs that a path needs; 0 if too few other nodes at its ends could convict it, after two runs."""
        if self._are_links_busy or not any(run.beside <= QUIET_BESIDE for run in self._paths.never_good[path]):
            return 1
        missing = self._paths.runs_missing(path)
        kinds = frozenset().union(*self._kinds_bad_across(path))
        ends = [self._evidence.fabric.leaves[leaf] for leaf in path.ends if path.of_leaves]
        others = [sum(self._hardware.kind_of(node) in kinds and node not in met for node in end) for end in ends]
        return math.ceil(missing / 2) if missing <= min(others, default=missing) else int(len(met) == 2)

    def _compare(self, path: Path, leaf: str) -> Iterator[Probe]:
        """A node of a small leaf that was slow across a path, with one of a third leaf: that may be as slow.

        Rule: after MOST_COMPARED such runs there is none, and the path runs no more. Prevents: leaf a has few uplinks,
        and each of its paths runs until the sweep ends, although no run can tell them from a bad path.
        """
        fabric = self._evidence.fabric
        slow = {node for run in self._paths.never_good[path] for node in run.members}.intersection(fabric.leaves[leaf])
        compared = [
            run
            for node in slow
            for run in (*self._evidence.histories[node].good_together, *self._evidence.histories[node].bad_together)
            if run.beside <= QUIET_BESIDE and not fabric.leaves_of(run.members).issubset(path.ends)
        ]
        met = {node for run in compared for node in run.members}
        others = [name for name in fabric.leaves if name not in path.ends and name not in self.leaves_tried]
        for node in sorted(filter(self._is_free, slow)) if len(compared) < MOST_COMPARED else ():
            pool = self._pools[self._hardware.kind_of(node)]
            for partner in filter(None, (pool.take_at(name, met) for name in others)):
                self.leaves_tried.update((*path.ends, *filter(None, fabric.leaves_of((partner,)))))
                yield Probe((node, partner), COMPARED.format(node, path.ends[0], path.ends[1], partner, leaf))
                return

    def _control(self, path: Path) -> Iterator[Probe]:
        """An end of a bad link with a healthy node: if this run is slow, too, by now, the link is not bad."""
        for end, other in (path.ends, path.ends[::-1]):
            pool = self._pools[self._hardware.kind_of(end)]
            partner = pool.take_near(end, {end, other}, set()) if self._is_free(end) else None
            if partner is not None:
                yield Probe((end, partner), SINCE.format(end, partner, *path.ends))
                return

    def _retest(self, path: Path, met: set[str]) -> Iterator[Probe]:
        """Tries a path again, between leaves with other nodes than those it `met`: one of them may be bad.

        If there are no others, at least with a pair that has not met: a repeated run tells less.
        """
        across = self._kinds_bad_across(path)
        nodes = self._pair_across(path, met, across) if path.of_leaves else tuple(filter(self._is_free, path.ends))
        if len(nodes) == 2:
            self.leaves_tried.update(path.ends)
            yield Probe(nodes, PATH.format(*path.ends))

    def _pair_across(self, path: Path, met: set[str], mixtures: Iterable[frozenset[ComparedKind]]) -> tuple[str, ...]:
        """A free node at each end, both of one of these mixtures of hardware; fewer if none is."""
        runs = sorted(self._paths.never_good.get(path, ()), key=lambda run: run.round)
        latest = {node for run in runs[-1:] for node in run.members}
        nodes: tuple[str, ...] = ()
        for kinds in mixtures:
            one = self._take_at(path.ends[0], (met, latest), kinds)
            partners = {node for run in runs if one in run.members for node in run.members}
            other = self._take_at(path.ends[1], (met, latest | partners, partners, latest), kinds)
            nodes = tuple(node for node in (one, other) if node is not None)
            if len(nodes) == 2:
                break
        return nodes

    def _take_at(self, leaf: str, avoided: Iterable[set[str]], kinds: frozenset[ComparedKind]) -> str | None:
        """A node at the leaf that is in none of the `avoided`, or in none but the first of them, and so on."""
        found = (self._pools[kind].take_at(leaf, avoid) for avoid in avoided for kind in sorted(kinds, key=str))
        return next(filter(None, found), None)

    def _kinds_bad_across(self, path: Path) -> Iterable[frozenset[ComparedKind]]:
        return dict.fromkeys(self._hardware.kinds_of(run.members) for run in self._paths.never_good[path])
