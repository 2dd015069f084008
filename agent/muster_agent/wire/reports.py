"""The reports of the outbox: which runs are next, in which form, and what an acknowledgement does.

`decide/report_timing.py` says which runs may go, `decide/delivery.py` how many at once and when again, and
`decide/repeated_runs.py` which of them travel as repeats.
"""

import time
from collections.abc import Container

import structlog

from muster.model import Run
from muster.wire import codec
from muster.wire.deflate import deflated
from muster.wire.messages import DEFLATE, REPEATS, Ack
from muster_agent.decide.delivery import DeliveryWindow
from muster_agent.decide.repeated_runs import RepeatedRuns, SplitRuns
from muster_agent.decide.report_timing import ReportTiming
from muster_agent.wire.outbox import NumberedRun, Outbox

BATCH_RUNS = 50
BATCH_BYTES = 512 * 1024

WARN_AFTER = 3
"""Attempts in a row without an acknowledgement until the log says so: 35 s."""

NOT_HEARD = (
    "no coordinator is heard at the broker: check that it runs, that it uses the same broker and the same `fleet`, and "
    "that the broker lets this account read"
)
NOT_STORED = (
    "a coordinator is heard, but stores nothing of this node: the broker may not let this account publish as node "
    "{node} (its user name, or the name in its certificate, must be {node}), the name may belong to another machine "
    "(see `muster node show {node}`), or the coordinator is overloaded"
)

log = structlog.get_logger()


class Reports:
    """The reports of one node. `repeated` decides which runs travel as repeats."""

    def __init__(self, node: str, outbox: Outbox, repeated: RepeatedRuns | None = None) -> None:
        self._node = node
        self._outbox = outbox
        self._delivery = DeliveryWindow()
        self._repeated = repeated or RepeatedRuns()
        self._timing = ReportTiming(outbox.last)

    @property
    def waiting(self) -> int:
        """How many runs wait to be stored, without those that wait for others."""
        return self._outbox.kept_through(self._timing.released_through)

    def appended(self, run: Run) -> None:
        """Notes that the outbox has a new run, which has its number."""
        self._timing.appended(run, time.monotonic())
        if self._timing.urgent_through == run.seq:
            self._delivery.hurry(time.monotonic())

    def connected(self) -> None:
        """Notes a new connection: what was sent may be lost."""
        self._delivery.start_again(time.monotonic())
        self._timing.release()

    def start_over(self) -> None:
        """Notes another leader. It has neither what its predecessor had not stored, nor the runs that others are like.

        So everything is sent again, and whole.
        """
        self._delivery.start_again(time.monotonic())
        self._repeated.start_over()

    def acknowledge(self, ack: Ack) -> None:
        """Deletes what is stored, and sends again from the oldest run if the coordinator asks for it."""
        if not self._outbox.acknowledge(ack.stream, ack.stored_through):
            log.warning("ack_ignored", stream=ack.stream, stored_through=ack.stored_through)
            return
        now = time.monotonic()
        self._timing.hold_s = ack.hold_s
        self._repeated.stored(ack.stored_through)
        self._delivery.stored(ack.stored_through, ack.gap, now)
        if ack.again or (ack.gap and self._repeated.refused(now)):
            self._delivery.start_again(now)

    def next_due(self) -> float:
        """When `tick` is due."""
        return min(self._delivery.next_due(), self._timing.next_due())

    def tick(self, *, coordinator_heard: bool) -> None:
        """Notes that time has passed. Warns once if the reports get no acknowledgement."""
        before = self._delivery.unanswered
        self._delivery.tick(time.monotonic())
        self._timing.tick(time.monotonic())
        if before < WARN_AFTER <= self._delivery.unanswered:
            hint = NOT_STORED.format(node=self._node) if coordinator_heard else NOT_HEARD
            log.warning("reports_not_acknowledged", waiting=self.waiting, hint=hint)

    def take_next(self, accepted: Container[str]) -> bytes | None:
        """The next report for a coordinator that accepts this; None if there is nothing to send now."""
        sent = self._delivery.sent_through
        room = min(BATCH_RUNS, self._delivery.free(self._outbox.kept_through(sent)))
        runs = self._outbox.pending(sent, self._timing.released_through, room, BATCH_BYTES)
        if not runs:
            return None
        sent_at = time.time()
        split = self._split(runs, sent_at) if REPEATS in accepted else SplitRuns([run.body for run in runs], [])
        payload = codec.encode_report(
            sent_at=sent_at,
            node=self._node,
            stream=self._outbox.stream,
            after=self._outbox.before(runs[0].seq),
            through=runs[-1].seq,
            urgent=runs[0].seq <= self._timing.urgent_through,
            runs=split.whole,
            repeats=split.repeats,
        )
        self._delivery.sent(runs[-1].seq, time.monotonic())
        return deflated(payload) if DEFLATE in accepted else payload

    def _split(self, runs: list[NumberedRun], sent_at: float) -> SplitRuns:
        return self._repeated.split(runs, sent_at, time.monotonic())
