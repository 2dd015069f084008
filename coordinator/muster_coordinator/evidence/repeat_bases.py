"""Makes whole runs of those that travelled as repeats (see `muster.wire.repeats`).

The idea: the coordinator keeps the last whole runs of each check of a node in memory, without id, times and numbers. A
repeat names one of them, and brings its numbers. What many nodes have in common is kept once: the names of metrics,
parameters and findings, and the facts, compressed. A base of its own takes some hundred bytes, and if its facts have
the serial numbers of its node, as many again as these have compressed.

The bases of a node are bounded in number and bytes, and a base in bytes, so that a small repeat cannot stand for much.
They are not stored: after a restart, or for a repeat that does not fit, `expand` returns None, and the node sends the
run whole.

Example: run 7 had the metrics `{"free": 0.5, "celsius": [40.0, 41.0]}`. The repeat `{"seq": 9, "like": 7, "metrics":
[0.4, 42, 43]}` becomes the run 9 with `{"free": 0.4, "celsius": [42.0, 43.0]}` and everything else from run 7.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from pydantic_core import from_json, to_json

from muster.model import Json, Run
from muster.wire import repeats
from muster.wire.messages import Repeat
from muster.wire.scheduled_runs import scheduled_id, stream_key
from muster_coordinator.model.run_shape import Layout, RunShape, layout_of, shape_of

MOST_BYTES_OF_A_BASE = 16 << 10
"""Maximum size as JSON of what a base brings to a repeat. Agents repeat runs of at most 12 KiB."""

MOST_BYTES_OF_A_NODE = 256 << 10
"""As many as its standing findings may take. The bases of a node with the shipped checks have 20 KiB."""

MOST_BASES_OF_A_NODE = 512
"""Four for each of a hundred checks and more."""

READ = 64
"""Facts that stay decompressed: those that many nodes have alike. Others take 20 µs each time."""

_LATEST_INSTANT = 253_402_300_800
"""ISO 8601 ends with the year 9999."""

_QUICK = 1


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Outline:
    """What runs of many nodes have in common: a run without numbers and facts, and the layout of its metrics."""

    digest: bytes
    run: Run
    layout: Layout
    size: int


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Facts:
    """The facts of a base as compressed JSON, and the digests of them that a RunShape has."""

    zipped: bytes
    size: int
    exact: bytes
    gaps: bytes


@dataclass(frozen=True, slots=True)
class _Base:
    outline: _Outline
    facts: _Facts

    @property
    def size(self) -> int:
        return self.outline.size + self.facts.size


@dataclass(slots=True)
class _NodeBases:
    """The bases of a node by number, the oldest first, in the stream that its last whole run was in."""

    stream: str
    by_seq: dict[int, _Base] = field(default_factory=dict)
    size: int = 0

    def add(self, seq: int, base: _Base) -> None:
        check = base.outline.run.check
        same = [number for number, each in self.by_seq.items() if each.outline.run.check == check]
        if len(same) >= repeats.MOST_BASES:
            self._drop(same[0])
        self.by_seq[seq] = base
        self.size += base.size
        while len(self.by_seq) > MOST_BASES_OF_A_NODE or self.size > MOST_BYTES_OF_A_NODE:
            self._drop(next(iter(self.by_seq)))

    def _drop(self, seq: int) -> None:
        self.size -= self.by_seq.pop(seq).size


class ExpandedRun(NamedTuple):
    """A run made of a repeat, its shape, and how many bytes the base brought."""

    run: Run
    shape: RunShape
    size: int


class RepeatBases:
    """The runs that repeats may name, by node."""

    def __init__(self) -> None:
        self._nodes: dict[str, _NodeBases] = {}
        self._outlines: WeakValueDictionary[bytes, _Outline] = WeakValueDictionary()
        self._facts: WeakValueDictionary[bytes, _Facts] = WeakValueDictionary()
        self._read = lru_cache(READ)(_read)

    def keep(self, run: Run, shape: RunShape, stream: str) -> None:
        """Keeps a whole run that others may be like, unless it is too large."""
        base = _Base(self._outline(run, shape), self._facts_of(run, shape))
        if base.size > MOST_BYTES_OF_A_BASE:
            return
        of_node = self._nodes.get(run.node)
        if of_node is None or of_node.stream != stream:
            of_node = self._nodes[run.node] = _NodeBases(stream)
        of_node.add(run.seq, base)

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self._nodes.pop(node, None)

    def expand(self, node: str, stream: str, repeat: Repeat, sent_at: float) -> ExpandedRun | None:
        """The run that a node has sent as a repeat in a report of that time; None if it does not fit to a base."""
        of_node = self._nodes.get(node)
        base = of_node.by_seq.get(repeat.like) if of_node is not None and of_node.stream == stream else None
        started_at = repeats.started_at(sent_at, repeat.age_ms)
        if base is None or not 0 <= started_at < _LATEST_INSTANT:
            return None
        facts = self._read(base.facts.zipped)
        try:
            metrics = _filled(base.outline.layout, repeat.metrics)
            if repeat.facts is not None:
                facts = repeats.with_numbers(facts, repeat.facts)
        except ValueError:
            return None
        changed = {
            "id": scheduled_id(stream_key(node, stream), repeat.seq),
            "node": node,
            "seq": repeat.seq,
            "started_at": started_at,
            "duration_s": repeat.duration_s,
            "metrics": metrics,
            "facts": facts,
        }
        run = base.outline.run.model_copy(update=changed)
        same = RunShape(base.outline.digest, base.facts.exact, base.facts.gaps)
        return ExpandedRun(run, same if repeat.facts is None else shape_of(run), base.size)

    def _outline(self, run: Run, shape: RunShape) -> _Outline:
        known = self._outlines.get(shape.outline)
        if known is None:
            bare = run.model_copy(update={"metrics": {}, "facts": {}})
            known = _Outline(shape.outline, bare, layout_of(run), len(to_json((bare, layout_of(run)))))
            self._outlines[shape.outline] = known
        return known

    def _facts_of(self, run: Run, shape: RunShape) -> _Facts:
        known = self._facts.get(shape.facts)
        if known is None:
            facts = to_json(run.facts)
            known = _Facts(zlib.compress(facts, _QUICK), len(facts), shape.facts, shape.gaps)
            self._facts[shape.facts] = known
        return known


def _read(zipped: bytes) -> Json:
    """Facts from compressed JSON. Runs share them, and nobody changes them."""
    facts: Json = from_json(zlib.decompress(zipped))
    return facts


def _filled(layout: Layout, numbers: Sequence[float | None]) -> dict[str, Any]:
    """Metrics of this layout with these numbers. ValueError if there are too many or too few."""
    metrics: dict[str, Any] = {}
    at = 0
    for name, length in layout:
        if length is None:
            metrics[name] = numbers[at] if at < len(numbers) else None
            at += 1
        else:
            metrics[name] = list(numbers[at : at + length])
            at += length
    if at != len(numbers):
        raise ValueError("has not as many numbers as the run that it is like")
    return metrics
