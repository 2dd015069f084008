"""What a node sends and receives in a day, by what the bytes are for, in simulated time.

Claim: at most 3 MB a day at the cadences as shipped with eight GPUs, in a fleet of any size.

Method: a simulated busy node (see `storage_node`) makes the runs of a day. The agent's own decisions say when a report
or a heartbeat is due and which runs travel as repeats, the real encoders write every message, and the coordinator's
`hold_s` says how long quiet runs wait. Counted are the packets of MQTT 3.1.1 in both directions, with their heads,
topics and confirmations.

Limits: a healthy node on a connection that never breaks; TCP, IP and TLS come on top (40 bytes or more for each packet
and its confirmation). The acknowledgement of a report comes at once.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mean

from benchmarks.figures import Figure, arguments, publish
from benchmarks.mqtt_packets import PUBLISH, QOS_1, RETAINED, packet, text
from benchmarks.storage_node import CADENCES, SimulatedNode

from muster.model import Run
from muster.wire import codec
from muster.wire.deflate import deflated
from muster.wire.messages import (
    DEFLATE,
    REPEATS,
    REPORTS_AS_HEARTBEATS,
    Ack,
    CoordinatorPresence,
    Presence,
    short_id,
)
from muster.wire.scheduled_runs import scheduled_id, stream_key
from muster.wire.topics import NodeTopic, Topics
from muster_agent.decide.heartbeat_timing import HeartbeatTiming
from muster_agent.decide.repeated_runs import RepeatedRuns
from muster_agent.decide.report_timing import ReportTiming
from muster_coordinator.evidence.pacing import hold_s
from muster_coordinator.runtime.link import ANNOUNCED_EVERY_S

HOUR_S = 3_600.0
START = 20_850 * 24 * HOUR_S
NODES = tuple(f"gpu-node-{number:05}" for number in (1, 2, 3))
"""Nodes differ in the times of their checks, and so in how many runs travel together."""

STREAM = "0123456789abcdef"
HEARTBEAT_S = 10.0
PUBACK_BYTES = 4
PACKET_ID = b"\0\1"
FLEETS = (8, 1_000, 10_000)
"""Below 200 nodes all fleets are alike."""


@dataclass(slots=True)
class Day:
    """The traffic of a node, by what it is for, in a fleet of `fleet` nodes."""

    node: str
    fleet: int
    of: Counter[str] = field(default_factory=Counter)
    reports: int = 0
    longest_wait_s: float = 0.0
    _topics: Topics = field(default_factory=lambda: Topics("default"))
    _timing: ReportTiming = field(default_factory=lambda: ReportTiming(0))
    _repeated: RepeatedRuns = field(default_factory=RepeatedRuns)
    _heartbeat: HeartbeatTiming = field(default_factory=lambda: HeartbeatTiming(HEARTBEAT_S))
    _waiting: list[Run] = field(default_factory=list)

    def pass_by(self, seconds: float) -> None:
        """Counts what is sent in that time."""
        for run in SimulatedNode(self.node, seed=1).runs(START, START + seconds):
            ended = run.started_at + run.duration_s
            self._until(ended)
            self._waiting.append(run.model_copy(update={"id": scheduled_id(stream_key(self.node, STREAM), run.seq)}))
            self._timing.appended(run, ended)
            self._send_due(ended)
        presence = CoordinatorPresence(
            id=short_id(), sent_at=START, online=True, epoch=1, url="http://10.0.0.1:8787",
            accepts=(DEFLATE, REPEATS, REPORTS_AS_HEARTBEATS),
        )  # fmt: skip
        for _ in range(round(seconds / ANNOUNCED_EVERY_S)):
            self._count("coordinator's presence", self._topics.coordinator, codec.encode_short(presence))

    def _until(self, end: float) -> None:
        while (due := min(self._heartbeat_due(), self._timing.next_due())) < end:
            self._send_due(max(due, START))

    def _send_due(self, now: float) -> None:
        """As the agent's link does."""
        if self._heartbeat_due() <= now:
            self._beat(now)
        self._timing.tick(now)
        released = [run for run in self._waiting if run.seq <= self._timing.released_through]
        if released:
            self._report(released, now)

    def _heartbeat_due(self) -> float:
        return self._heartbeat.due_beside(self._timing.next_due(), 0)

    def _beat(self, now: float) -> None:
        kept = self._heartbeat.is_to_be_kept(now)
        self._heartbeat.sent(0, 0, now, kept=kept)
        presence = Presence(
            id=short_id(),
            sent_at=now,
            node=self.node,
            online=True,
            process=short_id(),
            version="0.2.0",
            outbox=0,
            dropped={},
        )
        payload = codec.encode_short(presence)
        self._count("heartbeats", self._node(NodeTopic.PRESENCE), payload if kept else deflated(payload), kept=kept)

    def _report(self, runs: list[Run], now: float) -> None:
        self._waiting = self._waiting[len(runs) :]
        self.longest_wait_s = max(self.longest_wait_s, now - runs[0].started_at - runs[0].duration_s)
        bodies = [(run.seq, run.model_dump_json(exclude={"seq"})) for run in runs]
        split = self._repeated.split([(seq, f'{{"seq":{seq},{body[1:]}') for seq, body in bodies], now, now)
        payload = codec.encode_report(
            sent_at=now, node=self.node, stream=STREAM, after=runs[0].seq - 1, through=runs[-1].seq, urgent=False,
            runs=split.whole, repeats=split.repeats,
        )  # fmt: skip
        self.reports += 1
        self._count("reports", self._node(NodeTopic.REPORT), deflated(payload))
        self._heartbeat.reported(now)
        wait_s = hold_s(self.fleet, cadence_s=min(CADENCES.values()))
        ack = Ack(id=f"1-{self.reports}", sent_at=now, stream=STREAM, stored_through=runs[-1].seq, hold_s=wait_s)
        self._count("acknowledgements", self._node(NodeTopic.ACK), deflated(codec.encode_short(ack)), qos=0)
        self._timing.hold_s = wait_s
        self._repeated.stored(runs[-1].seq)

    def _node(self, topic: NodeTopic) -> str:
        return self._topics.node(self.node, topic)

    def _count(self, what: str, topic: str, payload: bytes, *, qos: int = 1, kept: bool = False) -> None:
        """Counts the packet: its payload, what is around it, and the confirmation of QoS 1."""
        flags = (QOS_1 if qos else 0) | (RETAINED if kept else 0)
        whole = packet(PUBLISH | flags, text(topic) + (PACKET_ID if qos else b"") + payload)
        self.of[f"{what}, payload"] += len(payload)
        self.of[f"{what}, heads"] += len(whole) - len(payload) + (PUBACK_BYTES if qos else 0)


def figures(fleet: int, hours: float) -> Iterator[Figure]:
    """The figures of a fleet: the mean of some of its nodes over that time, for a day."""
    per_day = 24 / hours
    days = [Day(node, fleet) for node in NODES]
    for day in days:
        day.pass_by(hours * HOUR_S)
    parts = {name: round(per_day * mean(day.of[name] for day in days) / 1e6, 3) for name in days[0].of}
    totals = [per_day * day.of.total() / 1e6 for day in days]
    spread = {"most": round(max(totals), 3), **parts}
    yield Figure(what=f"{fleet} nodes: traffic", unit="MB/day", value=mean(totals), target=("<=", 3.0), spread=spread)
    yield Figure(what=f"{fleet} nodes: reports", unit="a day", value=per_day * mean(day.reports for day in days))
    longest_s = max(day.longest_wait_s for day in days)
    yield Figure(what=f"{fleet} nodes: longest wait of a quiet run", unit="s", value=longest_s)


def main() -> None:
    """Measures and publishes."""
    parser: argparse.ArgumentParser = arguments(__doc__)
    parser.add_argument("--fleets", type=int, nargs="+", default=list(FLEETS), help="nodes of the fleets")
    parser.add_argument("--hours", type=float, default=24.0, help="simulated hours")
    options = parser.parse_args()
    publish(options, [figure for fleet in options.fleets for figure in figures(fleet, options.hours)])


if __name__ == "__main__":
    main()
