"""The page of one sweep: first the verdict and what it convicts, with the reasons."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.model import Topology, Verdict
from muster_coordinator.localize.wording.sentences import amount
from muster_coordinator.model.sweep_records import GroupState, RoundRecord, SweepRecord
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.sweep_culprits import SweepCulprit, sweep_culprits
from muster_coordinator.views.sweeps.explained import Explanation
from muster_coordinator.views.sweeps.explanation import excluded
from muster_coordinator.views.sweeps.matrix.pairs import Pair, pairs
from muster_coordinator.views.sweeps.naming import by_value
from muster_coordinator.views.sweeps.node_in_sweep import CaseFile
from muster_coordinator.views.sweeps.progress import round_line
from muster_coordinator.views.sweeps.result import smallest_loss_in_words, undecided_nodes
from muster_coordinator.views.sweeps.rounds import group_line
from muster_coordinator.views.sweeps.start_command import start_command

MOST_CULPRITS = 20
MOST_EXCLUDED = 3
"""Culprits for which the page says what else is ruled out: each takes 0.3 s for a sweep of 1,000 nodes."""

MOST_REASONS = 20
MOST_NODES = 20
MOST_ROUNDS = 50
MOST_GROUPS = 10
MOST_LEARNED = 10
MOST_PAIRS = 50
MOST_DRAWN = 450
"""The drawing of more nodes is larger than a screen, and has megabytes."""


@dataclass(frozen=True, slots=True)
class ExplainedCulprit:
    """A culprit, and the other explanations that runs exclude."""

    culprit: SweepCulprit
    excluded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodesBySentence:
    """Nodes of which the same is to be said; the sentence may be empty."""

    sentence: str
    nodes: Bounded[str]


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """A round: how many of its groups have ended, those that did not pass, and what it changed about the diagnosis."""

    line: str
    ended: int
    groups: int
    not_passed: Bounded[str]
    learned: Bounded[str]


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair of nodes: what it reached, with the unit, and how many of its runs failed."""

    nodes: tuple[str, str]
    reached: str
    runs: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPage:
    """What the page shows of a sweep at the time `at`.

    - `why`: the explanation for one node, if it was asked for; `refused`: why there is none
    - `pairs`: those that failed first, then the slowest; `is_drawn`: there are few enough nodes for a drawing
    - `start`: the command line that starts it again; None if it would be too long
    """

    at: float
    sweep: SweepRecord
    culprits: Bounded[ExplainedCulprit]
    suspects: Bounded[str]
    inconclusive: Bounded[NodesBySentence]
    absent: Bounded[NodesBySentence]
    notes: Bounded[str]
    rounds: Bounded[RoundProgress]
    pairs: Bounded[PairRow]
    is_drawn: bool
    start: str | None
    why: Explanation | None
    asked_why: str
    refused: str

    @property
    def is_running(self) -> bool:
        return self.sweep.ended_at is None

    @property
    def smallest_loss(self) -> str:
        """Which loss the sweep could not have found; empty if that is not known."""
        return smallest_loss_in_words(self.sweep)

    @property
    def why_no_culprit(self) -> str:
        """Why the page names no culprit."""
        if self.is_running:
            return "Nothing is convicted yet: the sweep still runs."
        if self.sweep.verdict is Verdict.PASS:
            return "Nothing: every node has passed."
        if self.sweep.inconclusive:
            return "Nothing: the runs do not suffice to name a culprit. See below what is missing."
        return "Nothing was convicted."


def sweep_page(
    sweep: SweepRecord,
    places: Mapping[str, Topology],
    *,
    at: float,
    why: Explanation | None = None,
    asked_why: str = "",
    refused: str = "",
) -> SweepPage:
    """The page of the complete record. `places` are the known positions of its nodes."""
    undecided, notes = undecided_nodes(sweep)
    found = tuple(_pair_rows(sweep))
    return SweepPage(
        at=at,
        sweep=sweep,
        culprits=_explained_culprits(sweep, places),
        suspects=bounded(sweep.suspects, MOST_NODES),
        inconclusive=_by_sentence(undecided),
        absent=_by_sentence(by_value(sweep.absent)),
        notes=bounded(notes, MOST_REASONS),
        rounds=_rounds(sweep),
        pairs=bounded(found, MOST_PAIRS),
        is_drawn=bool(found) and len(sweep.nodes) <= MOST_DRAWN,
        start=start_command(sweep),
        why=why,
        asked_why=asked_why,
        refused=refused,
    )


def _explained_culprits(sweep: SweepRecord, places: Mapping[str, Topology]) -> Bounded[ExplainedCulprit]:
    convicted = bounded(sweep_culprits(sweep), MOST_CULPRITS)
    explained = (
        ExplainedCulprit(culprit, _excluded(sweep, culprit, places) if number < MOST_EXCLUDED else ())
        for number, culprit in enumerate(convicted.items)
    )
    return Bounded(tuple(explained), convicted.rest)


def _excluded(sweep: SweepRecord, culprit: SweepCulprit, places: Mapping[str, Topology]) -> tuple[str, ...]:
    return excluded(CaseFile(sweep, culprit.nodes[0], places)) if culprit.kind == "node" else ()


def _by_sentence(said: Mapping[str, Sequence[str]]) -> Bounded[NodesBySentence]:
    groups = (NodesBySentence(sentence, bounded(nodes, MOST_NODES)) for sentence, nodes in said.items())
    return bounded(groups, MOST_REASONS)


def _rounds(sweep: SweepRecord) -> Bounded[RoundProgress]:
    """The rounds in order; of too many, the last ones."""
    shown = sweep.rounds[-MOST_ROUNDS:]
    return Bounded(tuple(_progress(stage, sweep.metric) for stage in shown), len(sweep.rounds) - len(shown))


def _progress(stage: RoundRecord, metric: str | None) -> RoundProgress:
    ended = [group for group in stage.groups if group.state is GroupState.ENDED]
    not_passed = (group_line(group, metric) for group in ended if group.verdict is not Verdict.PASS)
    return RoundProgress(
        line=round_line(stage),
        ended=len(ended),
        groups=len(stage.groups) + stage.waiting,
        not_passed=bounded(not_passed, MOST_GROUPS),
        learned=bounded(stage.learned, MOST_LEARNED),
    )


def _pair_rows(sweep: SweepRecord) -> Iterator[PairRow]:
    for pair in _worst_first(pairs(sweep)):
        reached = "nothing measured" if pair.reached is None else amount(pair.reached, sweep.metric)
        yield PairRow(pair.nodes, reached, pair.runs, pair.failed)


def _worst_first(found: Iterable[Pair]) -> list[Pair]:
    return sorted(found, key=lambda pair: (not pair.failed, pair.reached is not None, pair.reached or 0.0))
