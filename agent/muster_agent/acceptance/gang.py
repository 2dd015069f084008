"""Decides which nodes of a job may go on together. Pure.

A pair that failed says that one of its two nodes is bad, not which. So both are paired again, with nodes that have
passed. A node is cleared if it passes with any other. It is rejected if it fails with two cleared nodes. Example with
the nodes a, b, c and d, where a is bad:

    round 1    a-b fails, c-d passes    c and d are cleared
    round 2    a-c fails, b-d passes    b is cleared; a has failed with b and c, and is rejected

Nothing is guessed. If the only pair of two nodes fails, neither of them passes. If both nodes of a failed pair are
cleared by others, the path between them may be bad, and the later of them goes on only if no other can.

A healthy job of n nodes takes one round of n / 2 pairs. A bad node adds one or two rounds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from muster.acceptance import GangDecision, NodeConclusion
from muster.model import Run, Severity, Verdict, worst
from muster.nouns import count

MOST_ROUNDS = 6
"""Rounds of pairs. Where nearly all pairs fail, more of them tell nothing new and cost minutes."""

_ENOUGH_FAILED_PAIRS = 2
"""With cleared partners. After one, the path between the two might be to blame."""

_BLAME = (Verdict.SKIPPED, Verdict.UNKNOWN, Verdict.FAIL)
"""The verdicts of pairs that did not pass. A pair that was SKIPPED has shown nothing, as UNKNOWN says."""

_LOST = "run.lost"

NodePair = tuple[str, str]


@dataclass(slots=True)
class _NodeRecord:
    """What is known of a node. `failed_with` has the verdict of each failed pair by partner."""

    verdict: Verdict = Verdict.PASS
    reason: str = ""
    is_cleared: bool = False
    partners: set[str] = field(default_factory=set)
    failed_with: dict[str, Verdict] = field(default_factory=dict)

    @property
    def is_fit(self) -> bool:
        return self.verdict in (Verdict.PASS, Verdict.WARN)

    def note_pair(self, partner: str, verdict: Verdict | None) -> None:
        """The verdict of a pair; None if its partner was lost."""
        self.partners.add(partner)
        if verdict in _BLAME:
            self.failed_with[partner] = max(verdict, Verdict.UNKNOWN, key=_BLAME.index)
        elif verdict is not None:
            self.is_cleared = True

    def reject(self, verdict: Verdict, reason: str) -> None:
        if self.is_fit:
            self.verdict, self.reason = verdict, reason


class GangSelection:
    """Selects `need` of the nodes, which are in the order of ranks. Tell it every run, then ask what to do next."""

    def __init__(self, nodes: Sequence[str], need: int) -> None:
        self._records = {node: _NodeRecord() for node in nodes}
        self._need = need
        self._check, self._rounds = "", 0
        self._problem_together = ""
        self._chosen_last: set[str] = set()

    @property
    def fit(self) -> list[str]:
        """The nodes that have not failed."""
        return [node for node, record in self._records.items() if record.is_fit]

    @property
    def chosen(self) -> list[str]:
        """The nodes that go on, in the order of ranks: first those without a warning; empty if there are too few."""
        last = self._chosen_last
        preferred = sorted(self.fit, key=lambda node: (self._records[node].verdict is Verdict.WARN, node in last))
        taken = {*preferred[: self._need]}
        return [node for node in self._records if node in taken] if len(taken) == self._need else []

    def note_alone(self, runs: Iterable[Run]) -> None:
        """Runs of a check on each node alone."""
        for run in runs:
            record = self._records[run.node]
            if run.verdict in (Verdict.FAIL, Verdict.UNKNOWN):
                record.reject(run.verdict, _problem(run))
            elif run.verdict is Verdict.WARN and record.is_fit:
                record.verdict, record.reason = Verdict.WARN, _problem(run)

    def begin_pairs(self, check: str) -> None:
        """The pairs of a group check begin. What pairs have shown before was about another check."""
        self._check, self._rounds = check, 0
        for record in self._records.values():
            record.is_cleared, record.partners, record.failed_with = False, set(), {}

    def next_pairs(self) -> list[NodePair]:
        """Pairs to run at the same time; empty if no more pairs are needed, or none could tell more."""
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            return []
        pairs: list[NodePair] = []
        cleared = dict.fromkeys(node for node in self.fit if self._is_cleared(node))
        uncleared = dict.fromkeys(self._open())
        for node in self._open():
            if node not in uncleared:  # it is in a pair of this round
                continue
            del uncleared[node]
            # A cleared partner tells more.
            partner = self._new_partner(node, cleared) or self._new_partner(node, uncleared)
            if partner is not None:
                pairs.append((node, partner))
                cleared.pop(partner, None)
                uncleared.pop(partner, None)
        return pairs

    def note_pairs(self, results: Iterable[tuple[NodePair, Sequence[Run]]]) -> None:
        """The runs of the pairs of a round. A node that was lost is rejected, and nothing is known of its partner."""
        for pair, runs in results:
            verdict = None if self._reject_lost(runs) else worst([run.verdict for run in runs])
            for node, partner in (pair, pair[::-1]):
                self._records[node].note_pair(partner, verdict)
        for node in self._open():
            record = self._records[node]
            against = {partner: verdict for partner, verdict in record.failed_with.items() if self._is_cleared(partner)}
            if len(against) >= _ENOUGH_FAILED_PAIRS:
                partners = " nor with ".join(against)
                record.reject(worst([*against.values()]), f"{self._check} did not pass with {partners}")

    def end_pairs(self) -> None:
        """Rejects the nodes that no pair has cleared, and notes which go on only if no other can."""
        self._chosen_last |= self._later_nodes_of_bad_paths()
        for node in self._open():
            record = self._records[node]
            reason = "had no other node for a pair"
            if partners := ", ".join(record.failed_with):
                reason = f"did not pass with {partners}, and too few other nodes could tell which of them is bad"
            record.reject(Verdict.UNKNOWN, f"{self._check} {reason}")

    def note_together(self, runs: Sequence[Run]) -> bool:
        """The runs of the chosen nodes together. True if others should be chosen, because nodes were lost."""
        if self._reject_lost(runs):
            return True
        failed = next((run for run in runs if run.verdict in (Verdict.FAIL, Verdict.UNKNOWN)), None)
        if failed is not None:
            self._problem_together = f"the chosen nodes did not pass together: {_problem(failed)}"
        return False

    def conclusions(self) -> list[NodeConclusion]:
        """What it came to for each node."""
        chosen = self.chosen
        blocked = self._problem_together
        if not chosen:
            blocked = f"the job needs {count(self._need, 'node')}, and {len(self.fit)} passed"
        return [self._conclusion(node, record, chosen, blocked) for node, record in self._records.items()]

    def _conclusion(self, node: str, record: _NodeRecord, chosen: list[str], blocked: str) -> NodeConclusion:
        decision, reason = GangDecision.GO, record.reason
        if not record.is_fit:
            decision = GangDecision.REJECTED
        elif blocked:
            decision, reason = GangDecision.BLOCKED, blocked
        elif node not in chosen:
            decision = GangDecision.SPARE
        return NodeConclusion(node=node, decision=decision, verdict=record.verdict, reason=reason)

    def _open(self) -> list[str]:
        return [node for node in self.fit if not self._records[node].is_cleared]

    def _new_partner(self, node: str, free: Iterable[str]) -> str | None:
        """The first free node that this one has not been paired with."""
        return next((each for each in free if each not in self._records[node].partners), None)

    def _reject_lost(self, runs: Iterable[Run]) -> bool:
        lost = [run for run in runs if any(finding.code == _LOST for finding in run.findings)]
        for run in lost:
            self._records[run.node].reject(run.verdict, _problem(run))
        return bool(lost)

    def _is_cleared(self, node: str) -> bool:
        return self._records[node].is_cleared

    def _later_nodes_of_bad_paths(self) -> set[str]:
        """Of each two cleared nodes that did not pass together, the later one."""
        order = [*self._records]
        bad = [(node, partner) for node in self.fit for partner in self._records[node].failed_with]
        return {max(pair, key=order.index) for pair in bad if all(map(self._is_cleared, pair))}


def _problem(run: Run) -> str:
    """The worst finding of a run in one line."""
    order = [*Severity]
    worst_finding = max(run.findings, key=lambda finding: order.index(finding.severity), default=None)
    return f"{run.check}: {worst_finding.summary if worst_finding else run.verdict}"
