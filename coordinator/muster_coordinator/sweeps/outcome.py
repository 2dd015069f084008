"""What a sweep comes to: its verdict, and what else there is to say."""

from collections.abc import Iterable, Sequence

from muster.model import Verdict
from muster_coordinator.evidence.node_clock import clock_in_words
from muster_coordinator.localize.ruling import Ruling
from muster_coordinator.localize.trial import Outcome
from muster_coordinator.model.sweep_records import SweepState
from muster_coordinator.sweeps.inquiry import Inquiry
from muster_coordinator.sweeps.ledger import Ledger

UNTRIED = "the sweep was ended before any run of it had an outcome"


def verdict_of_sweep(state: SweepState, ruling: Ruling, unsettled: Sequence[str]) -> Verdict | None:
    """FAIL when anything is at fault, UNKNOWN when something could not be told; None while the sweep goes on."""
    if state not in (SweepState.FINISHED, SweepState.ABORTED):
        return None
    if ruling.anything_failed:
        return Verdict.FAIL
    return Verdict.UNKNOWN if unsettled or state is SweepState.ABORTED else Verdict.PASS


def notes(
    unsettled: Iterable[str], inquiry: Inquiry, ruling: Ruling, ledger: Ledger, *, ended_early: bool
) -> tuple[str, ...]:
    """Why each node is unsettled and what would settle it, what else was seen, and whose clock is wrong.

    A sweep that was `ended_early` had more to try: what it has not tried lacks nothing else.
    """
    seen_last = {node: trial.detail for trial in inquiry.trials for node in trial.members if trial.detail}
    missing = dict(ruling.unsettled)
    if ended_early:
        tried = {node for trial in inquiry.trials if trial.outcome is not Outcome.VOID for node in trial.members}
        missing |= dict.fromkeys(missing.keys() - tried, UNTRIED)
    why = {
        node: inquiry.absent.get(node) or "; ".join(filter(None, (seen_last.get(node), missing[node])))
        for node in unsettled
    }
    clocks = (f"the clock of {node} is {clock_in_words(ahead_s)}" for node, ahead_s in ledger.wrong_clocks().items())
    return (*(f"{node}: {sentence}" for node, sentence in why.items()), *ruling.seen, *clocks)
