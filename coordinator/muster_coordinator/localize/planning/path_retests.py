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
from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.planning.partners import PartnerPool
from muster_coordinator.localize.rules.path import QUIET_BESIDE
from muster_coordinator.model.probes import Probe

SINCE = "{} and {} show whether everything has become slower since {} and {} were bad together"
PATH = "between {} and {} a run was bad although its nodes are healthy"


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
        self._leaves_tried: set[str] = set()

    def due(self) -> Iterator[Probe]:
        """A retest, or more, of each suspected path. The caller adds each before it takes the next."""
        for path, runs in self._paths.suspected.items():
            if self._paths.lacks_control(path):
                yield from self._control(path)
            elif self._is_turn_of(path):
                met = {node for run in runs for node in run.members}
                for _ in range(self._pairs_at_once(path, met)):
                    yield from self._retest(path, met)

    def due_quietly(self) -> Iterator[Probe]:
        """For a round of no other groups: the paths that were bad often enough, but only beside many other groups."""
        paths = self._paths
        waiting = (
            path for path in paths.never_good if not paths.any_runs_missing(path) and paths.quiet_runs_missing(path)
        )
        for path in [*waiting][: QUIET_BESIDE + 1]:
            if self._is_turn_of(path):
                yield from self._retest(path, set())

    def _is_turn_of(self, path: Path) -> bool:
        """Whether no other path of its leaves is tried in this round.

        Prevents: pairs across three healthy paths of small leaf c slow each other in each round, or others fill its
        links just then.
        """
        return not path.of_leaves or self._leaves_tried.isdisjoint(path.ends)

    def _pairs_at_once(self, path: Path, met: set[str]) -> int:
        """Half of the runs that a path needs; 0 if too few other nodes at its ends could convict it."""
        if self._are_links_busy or not any(run.beside <= QUIET_BESIDE for run in self._paths.never_good[path]):
            return 1
        missing = self._paths.any_runs_missing(path)
        kinds = frozenset().union(*self._kinds_bad_across(path))
        ends = [self._evidence.fabric.leaves[leaf] for leaf in path.ends if path.of_leaves]
        others = [sum(self._hardware.kind_of(node) in kinds and node not in met for node in end) for end in ends]
        return math.ceil(missing / 2) if missing <= min(others, default=missing) else 0

    def _control(self, path: Path) -> Iterator[Probe]:
        """An end of a bad link with a healthy node: if this run is slow, too, by now, the link is not bad."""
        for end, other in (path.ends, path.ends[::-1]):
            pool = self._pools[self._hardware.kind_of(end)]
            partner = pool.take_near(end, {end, other}, set()) if self._is_free(end) else None
            if partner is not None:
                yield Probe((end, partner), SINCE.format(end, partner, *path.ends))
                return

    def _retest(self, path: Path, met: set[str]) -> Iterator[Probe]:
        """Tries a path again. A path of leaves gets other nodes than those it `met`: one of them may be bad."""
        nodes = self._at_ends(path, met) if path.of_leaves else tuple(filter(self._is_free, path.ends))
        if len(nodes) == 2:
            self._leaves_tried.update(path.ends)
            yield Probe(nodes, PATH.format(*path.ends))

    def _at_ends(self, path: Path, met: set[str]) -> tuple[str, ...]:
        """A free node at each end, of the same hardware as a group that was bad across the path; fewer if none is."""
        nodes: tuple[str, ...] = ()
        for kinds in self._kinds_bad_across(path):
            found = (self._take_at(leaf, met, kinds) for leaf in path.ends)
            nodes = tuple(node for node in found if node is not None)
            if len(nodes) == 2:
                break
        return nodes

    def _take_at(self, leaf: str, met: set[str], kinds: frozenset[ComparedKind]) -> str | None:
        found = (self._pools[kind].take_at(leaf, met) for kind in sorted(kinds, key=str))
        return next(filter(None, found), None)

    def _kinds_bad_across(self, path: Path) -> Iterable[frozenset[ComparedKind]]:
        return dict.fromkeys(self._hardware.kinds_of(run.members) for run in self._paths.never_good[path])
