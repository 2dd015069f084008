"""The size of findings, which bounds how many of them the coordinator keeps."""

from collections.abc import Iterable
from typing import TypeVar

from pydantic_core import to_json

from muster.model import Finding

BYTES_BESIDE_TEXT = 250
"""Bytes of a finding as JSON apart from its texts: times, ids and names of fields."""

FoundT = TypeVar("FoundT", bound=Finding)


def size_of(findings: Iterable[Finding]) -> int:
    """The approximate size of the findings as JSON, in bytes."""
    return sum(map(_size, findings))


def first_within(findings: Iterable[FoundT], count: int, size: int) -> tuple[FoundT, ...]:
    """The first findings: at most `count`, and at most `size` bytes of JSON."""
    first: list[FoundT] = []
    for finding in findings:
        count, size = count - 1, size - _size(finding)
        if count < 0 or size < 0:
            break
        first.append(finding)
    return tuple(first)


def _size(finding: Finding) -> int:
    return BYTES_BESIDE_TEXT + len(finding.code) + len(finding.summary) + len(to_json(finding.evidence))
