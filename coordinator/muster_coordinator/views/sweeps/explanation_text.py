"""An explanation as text: the conclusion first, then the evidence."""

from collections.abc import Iterable, Iterator

from muster_coordinator.views.sweeps.explained import ExplainedGroup, ExplainedRound, Explanation, SweepStanding
from muster_coordinator.views.sweeps.naming import indented


def explanation_text(explanation: Explanation) -> str:
    """The explanation for people."""
    accused = "it" if explanation.standing is SweepStanding.CONVICTED else "what connects it"
    lines = [
        explanation.conclusion,
        *_section(f"evidence against {accused}", explanation.against),
        *_section("ruled out", explanation.excluded),
        *_section("notes", explanation.notes),
    ]
    for stage in explanation.rounds:
        lines += _section(f"round {stage.number}", _round(explanation.node, stage))
    return "\n".join(lines)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    held = indented(lines)
    return ["", title, *held] if held else []


def _round(node: str, stage: ExplainedRound) -> Iterator[str]:
    for group in stage.groups:
        yield from _group(group)
    if not stage.groups:
        yield f"{node} was in no group"
    yield from (f"after this round, {line}" for line in stage.learned)


def _group(group: ExplainedGroup) -> list[str]:
    company, *rest = group.told
    return [company, *indented(rest)]
