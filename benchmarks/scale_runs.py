"""The runs that simulated agents report, made and encoded with little work.

The idea: all nodes of the scale benchmark repeat the same few runs. Of each, VARIANTS are made in advance, whose noisy
figures differ as on a real node. A node's run is one of these with a number, an id, a name and a time of its own. What
the encoder works out about a run, whatever these four are, is worked out once for each variant.

Example: nvml's run of eight GPUs takes an agent 90 µs to make and to store, and up to 200 µs to encode. With that, ten
thousand simulated agents would need a core for what ten thousand nodes do beside their work.

A test holds that each report has the bytes that the real outbox and encoder make of the same runs.
"""

import random
from collections import deque
from itertools import islice

from muster.model import Run, format_instant
from muster.wire.repeats import RepeatableRun, repeatable_run
from muster.wire.scheduled_runs import SCHEDULED, scheduled_id, stream_key
from muster_agent.wire.outbox import NumberedRun

NOISY = ("temperature", "power_w", "utilisation", "sm_clock", "available", "zombies", "file_handles", "clock_offset")
"""Parts of the names of the metrics that differ from run to run on a real node."""

VARIANTS = 64

_SEQ, _ID, _NODE, _STARTED_AT = 0, "the-id", "the-node", 0.0


class RunVariant:
    """A scheduled run that many nodes repeat."""

    def __init__(self, run: Run) -> None:
        self.run = run.model_copy(update={"seq": _SEQ, "id": _ID, "node": _NODE, "started_at": _STARTED_AT})
        body = _as_kept(self.run)
        beginning, rest = body.split(f'"id":"{_ID}","node":"{_NODE}"')
        self._middle, self._end = rest.split(f'"{format_instant(_STARTED_AT)}"')
        reading = repeatable_run(body)
        assert beginning == "{"
        assert reading is not None, "only runs that find nothing are repeated"
        self._reading = reading

    def body(self, seq: int, id: str, node: str, started_at: float) -> str:
        """The run as JSON with its number."""
        own = f'{{"seq":{seq},"id":"{id}","node":"{node}"'
        return f'{own}{self._middle}"{format_instant(started_at)}"{self._end}'

    def reading(self, started_at: float) -> RepeatableRun:
        """What the encoder reads in the JSON of the run."""
        known = self._reading
        return RepeatableRun(known.check, known.outline, started_at, known.duration_s, known.metrics)


class VariantBody(str):
    """The JSON of a run that is a variant."""

    reading: RepeatableRun


def reading_of(body: str) -> RepeatableRun | None:
    """What the encoder reads in the JSON of a run."""
    return body.reading if isinstance(body, VariantBody) else repeatable_run(body)


def variants_of(run: Run, chance: random.Random) -> tuple[RunVariant, ...]:
    """The run with other noise in each variant."""

    def moved(name: str, value: float | list[float | None] | None) -> object:
        if value is None or not any(part in name for part in NOISY):
            return value
        if isinstance(value, list):
            return [moved(name, each) for each in value]
        changed = value * chance.uniform(0.97, 1.03)
        is_counted = value.is_integer() and "power" not in name  # in degrees, percent or MHz
        return float(round(changed)) if is_counted else round(changed, 3)

    metrics = ({name: moved(name, value) for name, value in run.metrics.items()} for _ in range(VARIANTS))
    return tuple(RunVariant(run.model_copy(update={"metrics": each})) for each in metrics)


class MemoryOutbox:
    """The outbox of a simulated agent. It has what the link calls of an `Outbox`, in memory, and drops no run."""

    drops = 0

    def __init__(self, node: str, stream: str) -> None:
        self.stream = stream
        self.last = 0
        self._node = node
        self._key = stream_key(node, stream)
        self._kept: deque[NumberedRun] = deque()  # their numbers have no gaps

    def append(self, run: Run) -> Run:
        """Keeps a run that nobody repeats, and returns it with its number."""
        self.last += 1
        if run.cause == SCHEDULED:
            run = run.model_copy(update={"id": scheduled_id(self._key, self.last)})
        self._kept.append(NumberedRun(self.last, f'{{"seq":{self.last},{_as_kept(run)[1:]}'))
        return run.model_copy(update={"seq": self.last})

    def append_variant(self, variant: RunVariant, started_at: float) -> Run:
        """Keeps a node's run, and returns it with its number. `started_at` has whole milliseconds, as messages have."""
        self.last += 1
        body = VariantBody(variant.body(self.last, scheduled_id(self._key, self.last), self._node, started_at))
        body.reading = variant.reading(started_at)
        self._kept.append(NumberedRun(self.last, body))
        return variant.run.model_copy(update={"seq": self.last})

    def pending(self, after: int, through: int, limit: int, limit_bytes: int) -> list[NumberedRun]:
        """The oldest runs above `after` and up to `through`: at most `limit`, and about `limit_bytes` as JSON."""
        runs: list[NumberedRun] = []
        size = 0
        for run in islice(self._kept, self.kept_through(after), self.kept_through(through)):
            size += len(run.body)
            if len(runs) == limit or (runs and size > limit_bytes):
                break
            runs.append(run)
        return runs

    def before(self, seq: int) -> int:
        """The number of the last run before `seq` that is still kept; 0 if none is."""
        return seq - 1 if self._kept and self._kept[0].seq < seq else 0

    def kept_through(self, seq: int) -> int:
        """How many runs up to and including `seq` are still kept."""
        return 0 if not self._kept else max(0, min(seq, self.last) - self._kept[0].seq + 1)

    def acknowledge(self, stream: str, through: int) -> bool:
        """Deletes the runs up to and including `through`; False for another stream or an unknown number."""
        if stream != self.stream or through > self.last:
            return False
        while self._kept and self._kept[0].seq <= through:
            self._kept.popleft()
        return True

    def dropped(self) -> dict[str, int]:
        """How many runs of each check were dropped: none."""
        return {}


def _as_kept(run: Run) -> str:
    return run.model_dump_json(exclude={"seq"})
