"""An explanation as text: the conclusion first, then what it rests on."""

from collections.abc import Iterable, Iterator

from muster_coordinator.views.sweeps.explained import ExplainedGroup, ExplainedRound, Explanation, Standing
from muster_coordinator.views.sweeps.lines import indented


def explanation_text(it: Explanation) -> str:
    """The explanation for people."""
    accused = "it" if it.standing is Standing.CONVICTED else "what connects it"
    lines = [
        it.conclusion,
        *_section(f"evidence against {accused}", it.against),
        *_section("ruled out", it.excluded),
        *_section("notes", it.notes),
    ]
    for stage in it.rounds:
        lines += _section(f"round {stage.number}", _round(it.node, stage))
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
