"""What findings take, so that nobody can make the coordinator keep more of them than it has room for."""

from collections.abc import Iterable
from typing import TypeVar

from pydantic_core import to_json

from muster.model import Finding

BYTES_BESIDE_TEXT = 250
"""Of a finding, as JSON: times, ids, and the names of the fields."""

Found = TypeVar("Found", bound=Finding)


def size_of(findings: Iterable[Finding]) -> int:
    """How many bytes the findings take as JSON, about."""
    return sum(map(_size, findings))


def first_within(findings: Iterable[Found], count: int, size: int) -> tuple[Found, ...]:
    """The first of the findings: at most so many, of so many bytes as JSON."""
    first: list[Found] = []
    for finding in findings:
        count, size = count - 1, size - _size(finding)
        if count < 0 or size < 0:
            break
        first.append(finding)
    return tuple(first)


def _size(finding: Finding) -> int:
    return BYTES_BESIDE_TEXT + len(finding.code) + len(finding.summary) + len(to_json(finding.evidence))
