"""Explains a sweep's conclusion about one node, and the other explanations that its runs exclude."""

from collections.abc import Iterator, Mapping

from muster.errors import Refused, unknown
from muster.model import Topology
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.sweep_records import RoundRecord, SweepRecord
from muster_coordinator.views.sweeps.explained import ExplainedRound, Explanation, SweepStanding
from muster_coordinator.views.sweeps.explained_group import explained_group
from muster_coordinator.views.sweeps.naming import MOST_NAMES, fabric, failed_part, names
from muster_coordinator.views.sweeps.node_in_sweep import CaseFile


def explain(record: SweepRecord, node: str, places: Mapping[str, Topology]) -> Explanation:
    """The explanation of `node` from the complete `record`. Raises Refused if the node is not in the sweep.

    `places` are the known positions of nodes.
    """
    if node not in record.nodes:
        raise Refused(unknown(f"node of sweep {record.id}:", node, record.nodes))
    case = CaseFile(record, node, places)
    standing = _standing(case)
    return Explanation(
        sweep=record.id,
        check=record.check,
        node=node,
        standing=standing,
        confidence=None if case.conviction is None else case.conviction.confidence,
        conclusion="; ".join((_conclusion(case, standing), *_around(case))),
        against=_against(case),
        excluded=excluded(case),
        rounds=tuple(_explained(case, stage) for stage in record.rounds),
        notes=case.notes,
    )


def _standing(case: CaseFile) -> SweepStanding:
    if case.conviction is not None:
        return SweepStanding.CONVICTED
    if case.node in case.record.cleared_nodes:
        return SweepStanding.CLEARED
    if any(len(part.leaves) == 1 for part in case.failed_fabric):
        return SweepStanding.BEHIND
    if case.node in case.record.inconclusive:
        return SweepStanding.INCONCLUSIVE
    return SweepStanding.OPEN


def _conclusion(case: CaseFile, standing: SweepStanding) -> str:
    match standing:
        case SweepStanding.CONVICTED:
            assert case.conviction is not None, "a convicted node has a conviction"
            code, confidence = case.conviction.code, case.conviction.confidence
            part = failed_part(case.conviction)
            return f"{case.node}{part}{',' if part else ''} is at fault ({code}, confidence {confidence:.2f})"
        case SweepStanding.CLEARED:
            return f"{case.node} is cleared{_proof(case)}"
        case SweepStanding.BEHIND:
            return f"{case.node} itself is inconclusive"
        case SweepStanding.INCONCLUSIVE:
            about = f"{case.node}: "
            why = next((note.removeprefix(about) for note in case.notes if note.startswith(about)), None)
            return f"{case.node} is inconclusive{f': {why}' if why else ''}"
        case SweepStanding.OPEN:
            suspect = ", and is a suspect" if case.node in case.record.suspects else ""
            return f"{case.node} is neither convicted nor cleared yet{suspect}"


def _proof(case: CaseFile) -> str:
    """The run that clears the node, preferably one with others."""
    passed = sorted((run for run in case.runs if run.passed), key=lambda run: len(run.group.members) == 1)
    return f": it passed {case.how(passed[0], case.node)}" if passed else ""


def _around(case: CaseFile) -> Iterator[str]:
    """The faulty parts that the node depends on."""
    for link in case.links:
        yield f"its link to {_far_end(link.between, case.node)} is at fault"
    for part in case.failed_fabric:
        yield f"{fabric(part)}, {'where it stands' if len(part.leaves) == 1 else 'from its leaf'}, is at fault"


def _far_end(between: tuple[str, str], node: str) -> str:
    one, other = between
    return other if one == node else one


def _against(case: CaseFile) -> tuple[str, ...]:
    """The reasons against the node, its links, its leaf and the paths from there."""
    own = () if case.conviction is None else (case.conviction,)
    return tuple(reason for failed in (*own, *case.links, *case.failed_fabric) for reason in failed.reasons)


def _explained(case: CaseFile, stage: RoundRecord) -> ExplainedRound:
    groups = [run.group for run in case.runs if run.round == stage.number]
    return ExplainedRound(
        number=stage.number,
        groups=tuple(explained_group(case.node, group, case.amounts) for group in groups),
        learned=stage.learned,
    )


def excluded(case: CaseFile) -> tuple[str, ...]:
    """One sentence for each other explanation that a run excludes."""
    if case.conviction is None:
        return tuple(_explained_by_others(case))
    return (*_node_itself(case), *_fabric(case), *_partners(case))


def _explained_by_others(case: CaseFile) -> Iterator[str]:
    """Bad runs of a node that is not convicted and that something else explains."""
    for run in case.runs:
        culprits = [*case.culprits(run)] if run.charged else []
        if culprits and case.node not in culprits:
            yield f"the bad run {case.how(run, case.node)} is explained by {names(culprits)}"


def _node_itself(case: CaseFile) -> Iterator[str]:
    """A node that passes alone is bad only because of its connections."""
    alone = next((run for run in case.runs if run.passed and len(run.group.members) == 1), None)
    if alone is not None and case.conviction and case.conviction.part != Part.NODE:
        yield f"{case.node} itself is not to blame: it passed {case.how(alone, case.node)}"


def _fabric(case: CaseFile) -> Iterator[str]:
    """A run alone uses no link, and several partners do not share one link."""
    alone = next((run for run in case.bad_runs if len(run.group.members) == 1), None)
    if alone is not None:
        yield f"no partner, link or switch is to blame: it was bad {case.how(alone, case.node)}"
    partners = list(dict.fromkeys(run.others(case.node)[0] for run in case.bad_runs if len(run.group.members) == 2))
    if len(partners) > 1:
        yield f"no single link or partner is to blame: it was bad with each of {names(partners)}"


def _partners(case: CaseFile) -> Iterator[str]:
    """The partners in its bad runs that passed without it."""
    partners = dict.fromkeys(node for run in case.bad_runs for node in run.others(case.node))
    cleared = set(case.record.cleared_nodes)
    proven = [(node, case.proofs[node]) for node in partners if node in cleared and node in case.proofs]
    for node, proof in proven[:MOST_NAMES]:
        yield f"{node} is not to blame: it passed {case.how(proof, node)}"
    if len(proven) > MOST_NAMES:
        yield f"{len(proven) - MOST_NAMES} other partners are not to blame either: they passed without it"
