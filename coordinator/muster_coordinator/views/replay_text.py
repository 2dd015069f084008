"""The decisions of a replay as text, beside the real decisions of that time."""

from collections.abc import Iterator, Sequence

from muster.instants import instant_text
from muster.nouns import count
from muster.table import table
from muster_coordinator.quarantine.replay import NodeReplay, Replay, ReplayedDecision, ReplayedKind
from muster_coordinator.quarantine.replay_comparison import Compared, DrainThen

MOST_LISTED = 50
"""Maximum number of nodes that `muster config check` lists; the others are counted."""

MOST_COMPARED = 200
"""Maximum number of decisions in the table of a replay; the others are counted, and JSON has all."""

NOT_KNOWN = (
    "Silent nodes, comparisons with the fleet, and what schedulers and actors answered are not stored as evidence. "
    "The replay knows runs, sweeps, holds, releases and lifted freezes.",
    "Every node known today begins in service, in its failure domain of today; earlier findings do not count.",
    "Every actor drains and resumes at once. A test of a drained node takes a minute and fails while its check reports "
    "an ERROR. No second opinion is asked for: a finding is confirmed when the next stored run found it too.",
)
"""Limits of a replay, and its assumptions."""

_IN_WORDS = {
    ReplayedKind.DRAINED: "drained",
    ReplayedKind.WAITS: "waits",
    ReplayedKind.ON_HOLD: "on hold",
    ReplayedKind.RETURNED: "returned",
    ReplayedKind.FROZEN: "draining paused",
    ReplayedKind.UNFROZEN: "draining resumed",
}


def required_lines(replay: Replay, nodes: int, days: float) -> Iterator[str]:
    """What the policy would have done, by node. `nodes` is the number of nodes, `days` the length of the history."""
    by_node = sorted(replay.by_node.items())
    drained = [row for node, replayed in by_node for row in _required_row(node, replayed)]
    spared = [(node, code, reason) for node, replayed in by_node for code, reason in replayed.spared.items()]
    which = f"{len(drained)} of {count(nodes, 'node')}"
    yield f"In the last {days:g} days this policy would have required draining for {which},"
    yield "by runs and sweeps alone; comparisons with the fleet and silent nodes are not stored."
    yield f"With budget, rate, holds and mass events it would have drained {len(replay.drained)} of them."
    yield from _listed(("NODE", "FIRST AT", "TIMES", "FINDINGS", "ROW"), drained, MOST_LISTED)
    if spared:
        yield "It would not have drained these nodes, although something was found:"
        yield from _listed(("NODE", "FINDING", "WHY NOT"), spared, MOST_LISTED)


def replay_lines(
    replay: Replay, rows: Sequence[Compared], *, nodes: int, days: float, policy: str, drains_then: int
) -> Iterator[str]:
    """Summary, limits of a replay, and each decision; `policy` names the policy."""
    drains = sum(decision.kind is ReplayedKind.DRAINED for decision in replay.decisions)
    yield (
        f"Replayed {days:.1f} days of {count(nodes, 'node')} under {policy}, as in mode enforce: "
        f"{count(drains, 'drain')}, at most {replay.most_out} out at once. Decided then: {count(drains_then, 'drain')}."
    )
    yield "What a replay cannot know:"
    yield from (f"- {sentence}" for sentence in NOT_KNOWN)
    yield from _listed(("TIME", "", "NODE", "DECIDED THEN", "REPLAYED", "BECAUSE"), [*map(_row, rows)], MOST_COMPARED)
    if any(row.differs for row in rows):
        yield "≠: drained only then, or only in the replay"


def _row(row: Compared) -> tuple[str, ...]:
    replayed = "-" if row.replayed is None else _IN_WORDS[row.replayed.kind]
    return (
        instant_text(row.at),
        "≠" if row.differs else "",
        row.node or "",
        _then(row.then),
        replayed,
        _because(row),
    )


def _then(then: DrainThen | None) -> str:
    if then is None:
        return "-"
    return "drained (dry run)" if then.dry_run else "drained"


def _because(row: Compared) -> str:
    if row.replayed is not None:
        return _reason(row.replayed)
    return "" if row.then is None else row.then.reason


def _reason(decision: ReplayedDecision) -> str:
    if decision.row is None:
        return decision.because
    return f"{', '.join(decision.codes)} (policy row {decision.row}): {decision.because}"


def _required_row(node: str, replayed: NodeReplay) -> Iterator[tuple[str, ...]]:
    if replayed.first is not None:
        requirement = replayed.first.requirement
        yield (
            node,
            instant_text(replayed.first.at),
            str(replayed.times),
            ", ".join(requirement.codes),
            requirement.row,
        )


def _listed(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], most: int) -> Iterator[str]:
    if rows:
        yield table(header, rows[:most])
    if len(rows) > most:
        yield f"and {len(rows) - most} more"
