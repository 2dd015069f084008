"""The share of TCP segments that a node had to send again because they were lost.

TCP repairs the loss of packets, so a link that loses a few packets is hardly slower than a healthy one. The number of
retransmitted segments shows such a link, at both of its ends. The kernel counts them for each network namespace, IPv4
and IPv6 together.
"""

from collections.abc import Container, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from muster import Finding, Measurement, Reference, Severity
from muster.model import Json, Metric
from muster_plugins.shared.metric_judgement import judge_single
from muster_plugins.shared.nccl.transport import Transport
from muster_plugins.shared.torch_group import RankGroup

METRIC = "tcp_resent_share"

FINDS = {
    "lossy": "many TCP segments were retransmitted: a link loses packets",
    "resent_unknown": "the kernel does not report TCP retransmissions",
}
"""What each finding means, by the part of its code after the check's name."""

_COUNTERS = Path("/proc/self/net/snmp")

_FEWEST = 500
"""With fewer segments, five random retransmissions would already be one percent."""


class Segments(NamedTuple):
    """The kernel's counters so far; `sent` does not include retransmitted segments, which are `resent`."""

    sent: int
    resent: int


class Resent(NamedTuple):
    """Facts about the segments that were sent between two readings of the counters."""

    metrics: dict[str, Metric]
    facts: Json


def look() -> str:
    """The text of the kernel's counters; empty if it cannot be read."""
    try:
        return _COUNTERS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def sent_again(before: str, group: RankGroup, transports: Container[Transport]) -> Resent:
    """Retransmissions of this rank's node since the reading `before`; only the first rank of each node reports them.

    `transports` are those of NCCL in the whole group. Of these only its sockets use the kernel's TCP; gloo always does.
    """
    over_tcp = group.backend == "gloo" or "NET/Socket" in transports
    counts = over_tcp and group.local_ranks[group.rank] == 0
    again = resent_between(before, look()) if counts else Resent({}, {})
    return again._replace(facts=again.facts | {"over_tcp": over_tcp})


def resent_between(before: str, after: str) -> Resent:
    """The share of segments that were retransmitted between two readings, if enough segments were sent to judge it."""
    try:
        sent, resent = _difference(segments(before), segments(after))
    except ValueError as reason:
        return Resent({}, {"tcp_uncounted": str(reason)})
    metrics: dict[str, Metric] = {METRIC: resent / sent} if sent >= _FEWEST else {}
    return Resent(metrics, {"tcp_segments": {"sent": sent, "resent": resent}})


def segments(text: str) -> Segments:
    """The counters in the text of `/proc/net/snmp`, which has a line of names and a line of values; else ValueError."""
    lines = [line.split() for line in text.splitlines() if line.startswith("Tcp:")]
    if len(lines) != 2 or len(lines[0]) != len(lines[1]):
        raise ValueError(f"{_COUNTERS} does not give a value for each of the names of TCP's counters")
    counters = dict(zip(*lines, strict=True))
    return Segments(_counter(counters, "OutSegs"), _counter(counters, "RetransSegs"))


def _counter(counters: Mapping[str, str], name: str) -> int:
    value = counters.get(name, "nothing")
    if not value.isdecimal():
        raise ValueError(f"{_COUNTERS} gives {value[:20]} as {name}")
    return int(value)


def _difference(before: Segments, after: Segments) -> Segments:
    if after.sent < before.sent or after.resent < before.resent:
        raise ValueError(f"the counters in {_COUNTERS} went back from {tuple(before)} to {tuple(after)}")
    return Segments(after.sent - before.sent, after.resent - before.resent)


def judge_resent(check: str, measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Judges retransmissions by their reference, or notes that the kernel does not report them, which is no fault."""
    if reason := measurement.facts.get("tcp_uncounted"):
        summary = f"TCP retransmissions are unknown: {reason}"
        return [Finding(code=f"{check}.resent_unknown", summary=summary, severity=Severity.INFO)]
    found = judge_single(measurement, references, METRIC, code=f"{check}.lossy")
    return [_with_counts(finding, measurement.facts["tcp_segments"]) for finding in found]


def _with_counts(finding: Finding, counted: JsonValue) -> Finding:
    """The finding with the two numbers from which its share was calculated."""
    assert isinstance(counted, dict)
    of_all = f"{counted['resent']} of {counted['sent']} TCP segments had to be sent again"
    return finding.model_copy(
        update={"summary": f"{of_all}: {finding.summary}", "evidence": finding.evidence | counted}
    )
