"""Quiet runs: runs without findings that differ from an earlier run only in numbers. Only their numbers are stored."""

from dataclasses import dataclass

from muster.model import Run
from muster_coordinator.model.run_shape import RunShape


@dataclass(frozen=True, slots=True)
class RunBase:
    """A whole run that other runs may be like."""

    node: str
    check: str
    run: str
    stream: str
    verdict: str
    shape: RunShape


@dataclass(frozen=True, slots=True)
class QuietRun:
    """A quiet run under the id that follows from its number, the id of the run that it is like, and its numbers.

    `metrics` are its numbers as text, `facts` are the numbers in its facts, empty if these are the same.
    """

    run: Run
    base: str
    metrics: str
    facts: str
