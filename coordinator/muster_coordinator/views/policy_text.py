"""A policy in words, and what a rehearsal of it has shown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from muster.conditions import in_words
from muster.model import format_instant
from muster.table import table
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.rehearsal import Rehearsal

MOST_LISTED = 50
"""So many nodes of a rehearsal are listed; the others are counted."""

_FOUND = {
    Proof.ONCE: "found once",
    Proof.TWICE: "found twice, or by a sweep",
    Proof.LOCALISED: "when a sweep convicts",
    Proof.COMPARED: "when comparing finds it",
}

_NAMED = {Proof.LOCALISED: "convictions by sweeps", Proof.COMPARED: "comparisons"}


def policy_lines(policy: Policy, shadowed: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """The rows in effect, in the order in which they are asked; `shadowed`: who takes all from a row."""
    yield "The first row that matches a finding decides; what none matches takes no node out of service."
    for number, row in enumerate(policy.rows, 1):
        if row.name in shadowed:
            yield f"{number:3}. {row.name}: never decides: row {shadowed[row.name]} before it takes all that it matches"
            continue
        yield f"{number:3}. {row.name}: {outcome(row)}: {findings(row)}"
        yield f"     {row.reason} [{row.source}]"


def findings(row: Row) -> str:
    """Which findings a row is about."""
    severity = "ERROR" if row.severity == "ERROR" else "WARNING and ERROR"
    checks = "" if row.checks == ("*",) else f" of {' or '.join(row.checks)}"
    when = "".join(f", {name} {in_words(condition)}" for name, condition in row.when.items())
    kind = f" ({_NAMED[row.proof]})" if row.proof in _NAMED else ""
    return f"{severity} {', '.join(row.codes)}{checks}{when}{kind}"


def outcome(row: Row) -> str:
    """What comes of what a row is about."""
    if not row.takes_out:
        return "stays in service"
    conditions = [_FOUND[row.proof]]
    if row.within_s is not None:
        conditions.append(f"by {row.repeats} runs within {row.within_s:g} s")
    if row.after_s:
        conditions.append(f"for {row.after_s:g} s")
    action = "" if row.action is None else f", {row.action}"
    return f"out of service (urgency {row.urgency}{action}), {', '.join(conditions)}, not over {row.fresh_s:g} s ago"


def rehearsal_lines(rehearsals: Iterable[tuple[str, Rehearsal]], nodes: int, days: float) -> Iterator[str]:
    """What the policy would have done, by node; `nodes` is how many there are, `days` how far back was looked."""
    by_node = sorted(rehearsals, key=lambda each: each[0])
    taken = [row for node, it in by_node for row in _taken_row(node, it)]
    spared = [(node, code, reason) for node, it in by_node for code, reason in it.spared.items()]
    yield f"In the last {days:g} days this policy would have taken {len(taken)} of {nodes} nodes out of service,"
    yield "without budget, holds and mass events, and by runs and sweeps alone, not by comparisons and silence."
    yield from _listed(("NODE", "FIRST AT", "TIMES", "FINDINGS", "ROW"), taken)
    if spared:
        yield "It would not have, although something was found:"
        yield from _listed(("NODE", "FINDING", "WHY NOT"), spared)


def _taken_row(node: str, it: Rehearsal) -> Iterator[tuple[str, ...]]:
    if it.first is not None:
        demand = it.first.demand
        yield node, format_instant(it.first.at), str(it.times), ", ".join(demand.codes), demand.row


def _listed(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if rows:
        yield table(header, rows[:MOST_LISTED])
    if len(rows) > MOST_LISTED:
        yield f"and {len(rows) - MOST_LISTED} more"
