"""A policy as text."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from muster.conditions import in_words
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.policy import Policy

_FOUND = {
    Proof.ONCE: "found once",
    Proof.TWICE: "found twice, or by a sweep",
    Proof.LOCALISED: "when a sweep convicts",
    Proof.COMPARED: "when comparing finds it",
}

_NAMED = {Proof.LOCALISED: "convictions by sweeps", Proof.COMPARED: "comparisons"}


def policy_lines(policy: Policy, shadowed: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """The rows in effect, in their order; `shadowed` names the row that takes all findings of another row."""
    yield "The first row that matches a finding decides. A finding that no row matches does not drain the node."
    for number, row in enumerate(policy.rows, 1):
        if row.name in shadowed:
            yield f"{number:3}. {row.name}: never decides: row {shadowed[row.name]} before it takes all that it matches"
            continue
        yield f"{number:3}. {row.name}: {outcome(row)}: {findings(row)}"
        yield f"     {row.reason} [{row.source}]"


def findings(row: Row) -> str:
    """The findings that a row is about."""
    severity = "ERROR" if row.severity == "ERROR" else "WARNING and ERROR"
    checks = "" if row.checks == ("*",) else f" of {' or '.join(row.checks)}"
    when = "".join(f", {name} {in_words(condition)}" for name, condition in row.when.items())
    kind = f" ({_NAMED[row.proof]})" if row.proof in _NAMED else ""
    return f"{severity} {', '.join(row.codes)}{checks}{when}{kind}"


def outcome(row: Row) -> str:
    """The consequence for the findings that a row is about."""
    if not row.drains:
        return "stays in service"
    conditions = [_FOUND[row.proof]]
    if row.within_s is not None:
        conditions.append(f"by {row.repeats} runs within {row.within_s:g} s")
    if row.after_s:
        conditions.append(f"for {row.after_s:g} s")
    action = "" if row.action is None else f", {row.action}"
    return f"out of service (urgency {row.urgency}{action}), {', '.join(conditions)}, not over {row.fresh_s:g} s ago"
