"""Quiet runs: runs without findings that differ from an earlier run only in numbers. Only their numbers are stored."""

import re
from dataclasses import dataclass
from hashlib import blake2b

from muster.model import Run
from muster_coordinator.model.run_shape import RunShape

IS_QUIET = re.compile(r"([0-9a-f]{16})\.(\d{1,16})")
"""The form of the id of a quiet run: a key for its node and stream, and its sequence number."""


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
    """A quiet run under the id that it has from now on, the id of the run that it is like, and its numbers as text.

    `facts` are the numbers in its facts, empty if these are the same.
    """

    run: Run
    base: str
    metrics: str
    facts: str


def stream_key(node: str, stream: str) -> str:
    """The part of the ids of quiet runs that stands for node and stream: no node can use the ids of another one."""
    return blake2b(f"{node} {stream}".encode(), digest_size=8).hexdigest()


def quiet_id(key: str, seq: int) -> str:
    """The id of a quiet run."""
    return f"{key}.{seq}"
