"""The result of a sweep as text."""

from collections.abc import Iterator, Mapping, Sequence

from muster.nouns import count
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.sweeps.naming import by_value, fabric, failed_part, indented


def sweep_report(sweep: SweepRecord) -> str:
    """The result: failed nodes, links and fabric with reasons, inconclusive and cleared nodes, smallest loss, cost."""
    return "\n".join(
        (_headline(sweep), *_requester(sweep), *_reason(sweep), *_failed(sweep), *_open(sweep), *_cleared(sweep))
    )


def smallest_loss_in_words(sweep: SweepRecord) -> str:
    """Which loss an ended sweep could not have found; empty if that is not known."""
    if sweep.ended_at is None or sweep.smallest_loss is None:
        return ""
    if sweep.smallest_loss == 1:
        return "Nothing was compared: how much speed a node has lost is not known."
    return f"A node that loses less than {100 * sweep.smallest_loss:.0f} % would not have been found."


def _headline(sweep: SweepRecord) -> str:
    return (
        f"sweep {sweep.id} {sweep.state}: {sweep.verdict or 'no verdict yet'} "
        f"({sweep.check}, {sweep.strategy}, {count(len(sweep.nodes), 'node')}, {count(len(sweep.rounds), 'round')})"
    )


def _requester(sweep: SweepRecord) -> list[str]:
    return indented([f"requested by {sweep.requested_by}"] if sweep.requested_by else [])


def _reason(sweep: SweepRecord) -> list[str]:
    return indented([sweep.reason] if sweep.reason else [])


def _failed(sweep: SweepRecord) -> Iterator[str]:
    for node in sweep.failed_nodes:
        yield f"failed node {node.node}{failed_part(node)} (confidence {node.confidence:.2f})"
        yield from indented(node.reasons)
    for link in sweep.failed_links:
        yield f"failed link {' - '.join(link.between)} (confidence {link.confidence:.2f})"
        yield from indented(link.reasons)
    for part in sweep.failed_fabric:
        yield f"failed {fabric(part)} (confidence {part.confidence:.2f})"
        yield from indented(part.reasons)


def _open(sweep: SweepRecord) -> Iterator[str]:
    """The suspects, the inconclusive nodes by missing evidence, and other notes."""
    if sweep.suspects:
        yield f"suspects: {', '.join(sweep.suspects)}"
    undecided, notes = undecided_nodes(sweep)
    for sentence, nodes in undecided.items():
        yield f"inconclusive: {', '.join(nodes)}" + (f" ({sentence})" if sentence else "")
    yield from (f"note: {note}" for note in notes)


def undecided_nodes(sweep: SweepRecord) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
    """The inconclusive nodes by missing evidence, which is empty if no note says it; and the other notes."""
    why = dict.fromkeys(sweep.inconclusive, "")
    other = []
    for note in sweep.notes:
        node, _, sentence = note.partition(": ")
        if node in why:
            why[node] = sentence
        else:
            other.append(note)
    return by_value(why), other


def _cleared(sweep: SweepRecord) -> Iterator[str]:
    yield f"cleared: {len(sweep.cleared_nodes)} of {count(len(sweep.nodes), 'node')}"
    if sentence := smallest_loss_in_words(sweep):
        yield sentence
    if sweep.ended_at is not None:
        groups = sum(len(stage.groups) for stage in sweep.rounds)
        yield (
            f"spent: {sweep.spent_node_s:.0f} node-seconds in {count(groups, 'group')} and "
            f"{count(len(sweep.rounds), 'round')}, {max(sweep.ended_at - sweep.created_at, 0):.0f} s in all"
        )
