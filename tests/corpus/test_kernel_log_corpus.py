"""The check `kernel_log` over real excerpts of logs: how often it agrees with an expert.

Each excerpt goes the way of a real log: as a file in the form of /dev/kmsg, through the check's `measure` and `judge`.
What may be missed, and which healthy machines may have a WARNING, is little and stands here.
"""

import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from tests.corpus.excerpts import Excerpt, excerpts

from muster import Finding, Severity
from muster.references import applicable, shipped
from muster_plugins.checks.kernel_log.check import judge, measure
from muster_plugins.checks.kernel_log.drivers import LEVEL_WARNING
from muster_plugins.checks.kernel_log.event_file import StandingEventsFile
from muster_plugins.checks.kernel_log.log_reader import KernelLog
from muster_plugins.checks.kernel_log.standing import StandingTimes
from muster_plugins.shared.no_params import NoParams

MOST_DISAGREEMENTS = 0.03
"""Share of the excerpts of a half in which check and expert may differ."""

MOST_MISSED = 0.05
"""Share of the faults that may be missed."""

MOST_FALSE_ALARMS = 0.01
"""Share of the healthy excerpts that may be a WARNING; none may be an ERROR."""

RANKS = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


class Judged(NamedTuple):
    """An excerpt with what the check found in it."""

    excerpt: Excerpt
    worst: Severity
    codes: frozenset[str]

    @property
    def agrees(self) -> bool:
        """Whether the worst finding is as bad as the expert says, and is one that the expert names."""
        named = not self.excerpt.codes or bool(self.codes & set(self.excerpt.codes))
        return self.worst is self.excerpt.worst and named and not self.excerpt.unjudgeable

    def __str__(self) -> str:
        expected = f"{self.excerpt.worst} {' or '.join(self.excerpt.codes)}".strip()
        found = f"{self.worst} {' and '.join(sorted(self.codes))}".strip()
        reason = self.excerpt.unjudgeable or self.excerpt.why
        return f"{self.excerpt.family}: {self.excerpt.name}: expected {expected} ({reason}), found {found}"


def found_in(excerpt: Excerpt, directory: Path) -> list[Finding]:
    """What the check says of a node whose kernel printed the excerpt."""
    now = int(time.monotonic() * 1e6)
    lines = (
        f"{LEVEL_WARNING if level is None else level},{number},{now},-;{text}\n"
        for number, (text, level) in enumerate(excerpt.lines(), start=1)
    )
    (directory / "kmsg").write_text("".join(lines), encoding="utf-8")
    log = KernelLog(
        kmsg=directory / "kmsg",
        journalctl=directory / "journalctl",
        windows=StandingTimes(error_s=86_400, other_s=3_600),
        memory=StandingEventsFile(directory / "kernel_log.json"),
        cleared=directory / "cleared",
    )
    context: Any = SimpleNamespace(devices=(), expected_gpus=None)
    measurement = measure(log, NoParams(), context)
    return judge(measurement, applicable(shipped(), "kernel_log", measurement.facts))


def judged(excerpt: Excerpt) -> Judged:
    with TemporaryDirectory() as directory:
        findings = found_in(excerpt, Path(directory))
    worst = max((finding.severity for finding in findings), key=RANKS.__getitem__, default=Severity.INFO)
    codes = {finding.code.removeprefix("kernel_log.") for finding in findings if finding.severity is worst}
    return Judged(excerpt, worst, frozenset(codes))


@cache
def corpus() -> tuple[Judged, ...]:
    """Every excerpt, judged by the check."""
    return tuple(map(judged, excerpts("kernel_log")))


def listed(results: Iterable[Judged]) -> str:
    return "\n".join(map(str, results))


def test_the_corpus_is_large_and_every_excerpt_is_sourced():
    """Each has a name of its own, a source and a reason; no text stands twice."""
    every = [result.excerpt for result in corpus()]
    assert len(every) >= 300
    assert len({excerpt.name for excerpt in every}) == len({excerpt.text for excerpt in every}) == len(every)
    assert [excerpt.name for excerpt in every if not (excerpt.source and excerpt.why and any(excerpt.lines()))] == []


@pytest.mark.parametrize("held_out", [False, True], ids=["seen", "held out"])
def test_the_check_agrees_with_the_expert(held_out):
    """In severity and in what it calls the fault, in both halves of the corpus."""
    half = [result for result in corpus() if result.excerpt.is_held_out is held_out]
    different = [result for result in half if not result.agrees]
    assert len(different) <= MOST_DISAGREEMENTS * len(half), listed(different)


def test_faults_are_found():
    """All but a few are judged as badly as by the expert, or worse."""
    faults = [result for result in corpus() if result.excerpt.worst is not Severity.INFO]
    missed = [result for result in faults if RANKS[result.worst] < RANKS[result.excerpt.worst]]
    assert len(faults) > len(corpus()) / 3
    assert len(missed) <= MOST_MISSED * len(faults), listed(missed)


def test_healthy_machines_are_left_alone():
    """What the expert calls harmless is never an ERROR, and hardly ever a WARNING."""
    harmless = [result for result in corpus() if result.excerpt.worst is Severity.INFO]
    assert len(harmless) > len(corpus()) / 3
    alarms = [result for result in harmless if result.worst is not Severity.INFO]
    assert len(alarms) <= MOST_FALSE_ALARMS * len(harmless), listed(alarms)
    assert [str(result) for result in alarms if result.worst is Severity.ERROR] == []


def test_a_wrong_judgement_is_told():
    """The test can fail, and then says which excerpt, what was expected and what was found."""
    excerpt = Excerpt(
        name="a made-up one",
        text="[    1.0] BUG: unable to handle page fault for address: 0ec74110",
        source="this test",
        system="none",
        worst=Severity.ERROR,
        codes=("xid",),
        why="it is wrong on purpose",
        family="none",
    )
    result = judged(excerpt)
    assert not result.agrees
    assert str(result) == (
        "none: a made-up one: expected ERROR xid (it is wrong on purpose), found WARNING kernel_oops"
    )
