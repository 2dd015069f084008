"""Who is at fault: from what groups showed to nodes and links.

A trial is what one group showed: GOOD, BAD, or VOID when it says nothing (it never ran, or a member vanished or had to
make way). A GOOD trial turns BAD when its objective is below half of what is typical here: the upper quartile over
the trials that passed otherwise, which stands as long as a quarter of the fleet is well. With fewer than two such
trials there is nothing to compare and nothing is judged.

A bad trial charges all its members alike, unless the ranks of some crashed by themselves: then it charges these, and
says nothing about the others.

- A node is cleared by a good trial, as long as its own ranks have not crashed in a later one.
- A node is convicted when it was charged together with a cleared node and has been charged with a second partner too,
  so that it is not the one link between two nodes that is bad. A crash of its own ranks needs no second partner, and
  a node that was tried alone needs none at all. No node is convicted because of the group that it was in.
- A link is convicted when a trial over it was bad twice although both its nodes are cleared.

Everything else is open. Confidence: each bad trial with a cleared partner leaves half of the doubt, and one with hard
evidence (a FAIL verdict, or a crash of the node's own ranks) a fifth; confidence is one minus the doubt.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.trial import Outcome, Trial
from muster_coordinator.localize.wording import amount, quantity

SLOW_SHARE = 0.5
"""Single measurements vary several-fold less than this on healthy links; a bad one falls short by far."""

SOFT_DOUBT = 0.5
HARD_DOUBT = 0.2

MEET = "{} has not been cleared and meets {}, which has passed"
MIX = "neither {} nor {} has been cleared, and no node has passed yet"
CONFIRM = "the link between {} and {} was bad once although both nodes pass with others"


@dataclass(frozen=True, slots=True)
class Conviction:
    """A node or a link (`of` names one or two nodes) that is at fault; `slow` when it works but is slow."""

    of: tuple[str, ...]
    slow: bool
    confidence: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two nodes to be tried together, and why."""

    members: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Case:
    """The evidence over `nodes` so far, and what follows from it. `metric` names what the objectives measure."""

    nodes: tuple[str, ...]
    trials: tuple[Trial, ...]
    metric: str | None = None

    @cached_property
    def typical(self) -> float | None:
        """The objective that groups reach here; None without at least two to compare."""
        values = [t.objective for t in self.trials if t.outcome is Outcome.GOOD and t.objective is not None]
        return statistics.quantiles(values, n=4, method="inclusive")[2] if len(values) >= 2 else None

    def is_slow(self, trial: Trial) -> bool:
        """Whether `trial` went well but fell far short of what is typical."""
        if trial.outcome is not Outcome.GOOD or trial.objective is None or self.typical is None:
            return False
        return trial.objective < SLOW_SHARE * self.typical

    def is_bad(self, trial: Trial) -> bool:
        return trial.outcome is Outcome.BAD or self.is_slow(trial)

    @cached_property
    def bad(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if self.is_bad(trial))

    @cached_property
    def cleared(self) -> dict[str, float]:
        """The nodes that are cleared, with the best objective that each has reached; 0 where none was measured."""
        best: dict[str, float] = {}
        for trial in self.trials:
            if self.is_bad(trial):
                for node in trial.crashed:
                    best.pop(node, None)
            elif trial.outcome is Outcome.GOOD:
                for node in trial.members:
                    best[node] = max(best.get(node, 0.0), trial.objective or 0.0)
        return best

    @cached_property
    def failed_nodes(self) -> tuple[Conviction, ...]:
        found = (self._convict(node, trials) for node, trials in self._charges.items() if node not in self.cleared)
        return tuple(conviction for conviction in found if conviction is not None)

    @cached_property
    def failed_links(self) -> tuple[Conviction, ...]:
        return tuple(
            self._conviction(link, trials, trials) for link, trials in self._bad_links.items() if len(trials) > 1
        )

    @cached_property
    def doubtful_links(self) -> tuple[tuple[str, ...], ...]:
        """Links between cleared nodes that were bad the only time that they were tried."""
        return tuple(link for link in self._bad_links if self._tries(link) == 1)

    @cached_property
    def intermittent_links(self) -> tuple[tuple[str, ...], ...]:
        """Links between cleared nodes that were bad once, and not again when they were tried again."""
        return tuple(link for link, bad in self._bad_links.items() if len(bad) == 1 and self._tries(link) > 1)

    @cached_property
    def open(self) -> tuple[str, ...]:
        """The nodes that are neither cleared nor convicted."""
        settled = {*self.cleared, *(node for conviction in self.failed_nodes for node in conviction.of)}
        return tuple(node for node in self.nodes if node not in settled)

    @cached_property
    def suspects(self) -> tuple[str, ...]:
        """The open nodes that some bad trial charges."""
        return tuple(node for node in self.open if node in self._charges)

    def next_pairs(self, absent: Set[str]) -> tuple[Pairing, ...]:
        """Disjoint pairs that would tell more; none when nothing can. Nodes in `absent` are not to be had."""
        here = [node for node in self.nodes if node not in absent]
        again = tuple(_disjoint(link for link in self.doubtful_links if absent.isdisjoint(link)))
        free = [node for node in here if not any(node in pairing.members for pairing in again)]
        still_open = set(self.open)
        peers = set(self.cleared or self.suspects)
        wanting = [node for node in free if node in still_open]
        return (*again, *self._match(wanting, [node for node in free if node in peers]))

    def _match(self, wanting: list[str], peers: list[str]) -> Iterator[Pairing]:
        """Pairs each of `wanting` with one of `peers` that it has not met, while they last."""
        met = {frozenset(trial.members) for trial in self.trials}
        taken: set[str] = set()
        for node in wanting:
            if node in taken:
                continue
            peers = [peer for peer in peers if peer not in taken]
            peer = next((peer for peer in peers if peer != node and frozenset((node, peer)) not in met), None)
            if peer is not None:
                taken |= {node, peer}
                yield Pairing((peer, node), (MEET if peer in self.cleared else MIX).format(node, peer))

    def why_slow(self, trial: Trial) -> str:
        """A sentence about a trial that is slow."""
        reached, typical = self._amount(trial.objective), self._amount(self.typical)
        return f"{self._quantity} {reached} is less than half of what is typical here, {typical}"

    @cached_property
    def _charges(self) -> dict[str, list[Trial]]:
        """By node, the bad trials that charge it."""
        charges: dict[str, list[Trial]] = {}
        for trial in self.bad:
            for node in trial.crashed or trial.members:
                charges.setdefault(node, []).append(trial)
        return charges

    @cached_property
    def _bad_links(self) -> dict[tuple[str, ...], list[Trial]]:
        """By link, the bad trials over it that charge two nodes which are both cleared."""
        links: dict[tuple[str, ...], list[Trial]] = {}
        for trial in self.bad:
            if len(trial.members) == 2 and not trial.crashed and all(node in self.cleared for node in trial.members):
                links.setdefault(tuple(sorted(trial.members)), []).append(trial)
        return links

    def _tries(self, link: tuple[str, ...]) -> int:
        return sum(1 for trial in self.trials if set(trial.members) == set(link))

    def _convict(self, node: str, charges: list[Trial]) -> Conviction | None:
        telling = [trial for trial in charges if all(other in self.cleared for other in trial.others(node))]
        partners = {trial.others(node) for trial in charges}
        alone_or_crashed = any(trial.members == (node,) or node in trial.crashed for trial in telling)
        if not telling or not (alone_or_crashed or len(partners) > 1):
            return None
        return self._conviction((node,), charges, telling)

    def _conviction(self, of: tuple[str, ...], charges: list[Trial], telling: list[Trial]) -> Conviction:
        doubt = math.prod(HARD_DOUBT if trial.hard else SOFT_DOUBT for trial in telling)
        return Conviction(of, all(map(self.is_slow, charges)), round(1 - doubt, 3), self._reasons(of, charges))

    def _reasons(self, of: tuple[str, ...], charges: list[Trial]) -> tuple[str, ...]:
        """One sentence for all slow trials, one for each other."""
        slow = [f"{self._amount(t.objective)} {self._company(t, of)}" for t in charges if self.is_slow(t)]
        other = [f"{self._company(trial, of)}: {trial.detail}" for trial in charges if not self.is_slow(trial)]
        if not slow:
            return tuple(other)
        return (f"{self._quantity} {', '.join(slow)}; typical here is {self._amount(self.typical)}", *other)

    def _company(self, trial: Trial, of: tuple[str, ...]) -> str:
        """With whom a trial was run, and how well these did elsewhere."""
        others = [node for node in trial.members if node not in of]
        if not others:
            return "alone" if len(of) == 1 else f"between {' and '.join(of)}, which both passed with others"
        return "with " + ", ".join(self._reputation(node) for node in others)

    def _reputation(self, node: str) -> str:
        if node not in self.cleared:
            return node
        best = self.cleared[node]
        return f"{node} (which passed at {self._amount(best)})" if best else f"{node} (which passed)"

    @property
    def _quantity(self) -> str:
        return quantity(self.metric)

    def _amount(self, value: float | None) -> str:
        return amount(value, self.metric)


def _disjoint(links: Iterable[tuple[str, ...]]) -> Iterator[Pairing]:
    taken: set[str] = set()
    for link in links:
        if taken.isdisjoint(link):
            taken.update(link)
            yield Pairing(link, CONFIRM.format(*link))
