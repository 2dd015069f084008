"""What simulated agents send with little work is what real agents send."""

import asyncio
import random
import re
import time
from typing import Any, cast

import pytest
from benchmarks.lean_member import LeanMember
from benchmarks.scale_runs import MemoryOutbox, RunVariant, reading_of, variants_of
from benchmarks.sweep_member import SweepMember

from muster.model import Run, Verdict
from muster.wire import codec, messages
from muster.wire.deflate import inflated
from muster.wire.messages import DEFLATE, REPEATS, Ack
from muster_agent.decide.events import CommandReceived
from muster_agent.decide.repeated_runs import RepeatedRuns
from muster_agent.wire.outbox import Outbox
from muster_agent.wire.reports import Reports

NODE, BEGAN = "gpu-node-00001", 1_800_000_000.123
METRICS = {"power_w": [311.5, None, 402.0], "temperature_c": [40.0, 41.0, 39.0], "share": 0.25, "none": None}
FACTS = {"devices": [{"name": "H100", "memory_mib": 81559}], "ok": True}


@pytest.fixture(autouse=True)
def fixed(monkeypatch):
    """One time and one id for all reports."""
    monkeypatch.setattr(time, "time", lambda: BEGAN + 100)
    monkeypatch.setattr(messages, "short_id", lambda: "abcd1234")


def run(**fields) -> Run:
    usual = {"id": "x", "check": "nvml", "verdict": Verdict.PASS, "metrics": METRICS, "facts": FACTS}
    return Run(**{**usual, "node": NODE, "started_at": BEGAN, "duration_s": 0.25, "cause": "schedule", **fields})


class Both:
    """The same node twice: with a real outbox and encoder, and with what the scale benchmark has instead."""

    def __init__(self, tmp_path) -> None:
        self._outbox = Outbox(tmp_path / "outbox.db", 1000, boot="b")
        self._lean_outbox = MemoryOutbox(NODE, self._outbox.stream)
        self._reports = Reports(NODE, self._outbox)
        self._lean_reports = Reports(NODE, cast(Outbox, self._lean_outbox), RepeatedRuns(reading_of))

    def report(self, made: Run) -> None:
        self._append(made)
        self._lean_reports.appended(self._lean_outbox.append(made))

    def report_variant(self, variant: RunVariant, at: float) -> None:
        self._append(variant.run.model_copy(update={"node": NODE, "started_at": at}))
        self._lean_reports.appended(self._lean_outbox.append_variant(variant, at))

    def _append(self, made: Run) -> None:
        kept = self._outbox.append(made)
        assert kept is not None
        self._reports.appended(kept)

    def next_report(self, *accepted: str) -> bytes:
        """What both send next, as JSON; empty for nothing."""
        real, lean = (each.take_next(accepted) for each in (self._reports, self._lean_reports))
        assert lean == real
        return inflated(real or b"", 1 << 20)

    def acknowledge(self, through: int, *, gap: bool = False) -> None:
        ack = Ack(sent_at=BEGAN, stream=self._outbox.stream, stored_through=through, gap=gap)
        self._reports.acknowledge(ack)
        self._lean_reports.acknowledge(ack)


def test_reports_have_the_bytes_of_the_real_outbox_and_encoder(tmp_path):
    """Whole at first, then as repeats, compressed or not, and whole again after a gap."""
    both = Both(tmp_path)
    variants = variants_of(run(), random.Random(1))
    assert len({str(each.run.metrics) for each in variants}) > 1
    for number, variant in enumerate(variants[:5]):
        both.report_variant(variant, BEGAN + number)
    assert b'"repeats"' not in both.next_report()
    assert both.next_report() == b""
    both.acknowledge(5)
    for number, variant in enumerate(variants[:30]):
        both.report_variant(variant, BEGAN + 10 + number)
    assert both.next_report(DEFLATE, REPEATS).count(b'"like"') == 29
    both.acknowledge(20)
    both.acknowledge(20, gap=True)
    both.report_variant(variants[0], BEGAN + 50)
    assert both.next_report(DEFLATE, REPEATS).count(b'"like"') == 15


def test_runs_of_groups_and_faults_travel_between_repeats(tmp_path):
    """In their order, and whole."""
    both = Both(tmp_path)
    variants = variants_of(run(), random.Random(1))
    both.report_variant(variants[0], BEGAN)
    both.report(run(id="of-group", group="s-1", cause="s-1"))
    both.report_variant(variants[1], BEGAN + 1)
    both.report(run(id="fault", verdict=Verdict.FAIL))
    sent = both.next_report(DEFLATE, REPEATS)
    assert sent.count(b'"like"') == 1
    assert b"of-group" in sent
    assert b'"urgent":true' in sent
    both.acknowledge(2)
    both.acknowledge(4)
    assert both.next_report() == b""


ORDER: dict[str, Any] = {"sent_at": BEGAN, "epoch": 7, "expires_at": BEGAN + 1e8, "cause": "s"}


def join(group: str, **fields) -> messages.Join:
    content: dict[str, Any] = {"check": "noop-group", "params": {"work_s": 0.0}, "timeout_s": 30.0, **fields}
    return messages.Join(**ORDER | content, group=group)


def prepare(group: str, **fields) -> messages.Prepare:
    place: dict[str, Any] = {"first_rank": 1, "world_size": 2, "master_addr": "127.0.0.1", "master_port": 1}
    return messages.Prepare(**ORDER | place | fields, group=group)


def start(group: str) -> messages.Start:
    return messages.Start(**ORDER, group=group)


@pytest.mark.parametrize(
    "orders",
    [
        [join("s-1"), prepare("s-1"), start("s-1"), join("s-2"), prepare("s-2"), start("s-2")],
        [join("s-1"), join("s-2"), prepare("s-1"), prepare("s-1"), start("s-1"), start("s-1")],
        [join("s-1"), messages.Abort(**ORDER, group="s-1", reason="x"), join("s-2"), prepare("s-2"), start("s-2")],
        [join("s-1", expires_at=BEGAN - 1e8), prepare("s-2", expires_at=BEGAN - 1e8), join("s-3"), start("s-3")],
        [prepare("s-1"), start("s-1"), join("s-1"), messages.Abort(**ORDER, group="s-9", reason="x"), prepare("s-1")],
    ],
    ids=["two groups", "busy and repeated", "aborted", "expired", "unknown groups"],
)
def test_a_lean_member_answers_as_a_real_agent_decides(orders):
    """The same replies and runs, except for ids, times and the words of a refusal."""

    async def answers() -> tuple[list[str], list[str]]:
        real, lean = list[str](), list[str]()
        member = SweepMember(NODE, lambda reply: real.append(shown(reply)), lambda made: real.append(shown(made)))
        cheap = LeanMember(
            NODE,
            lambda reply: lean.append(masked(reply.payload.decode())),
            lambda made: lean.append(shown(made)),
        )
        for number, order in enumerate(orders):
            ordered = order.model_copy(update={"id": f"7-{number}"})
            member.take(CommandReceived(ordered))
            cheap.obey(codec.encode(ordered))
            await asyncio.sleep(0.01)
        return real, lean

    real, lean = asyncio.run(answers())
    assert real
    assert lean == real


def shown(message) -> str:
    return masked(codec.encode(message).decode())


def masked(text: str) -> str:
    """A message without what is new in each, as long as it was."""
    text = re.sub(r'"id":"[0-9a-f]{32}"', '"id":"…"', text)
    text = re.sub(r'"detail":"[^"]+"', '"detail":"…"', text)
    text = re.sub(r'_at":\d{10}\.\d+', '_at":…', text)
    return re.sub(r'_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"', '_at":"…"', text)
