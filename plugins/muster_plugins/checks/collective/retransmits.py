"""How much of what a node sent over TCP it had to send again, because it got lost on the way.

TCP makes up for lost packets, so that a link that loses a few is hardly slower than a healthy one. What had to be sent
again gives it away, at both of its ends. The kernel counts that for a network namespace, IPv4 and IPv6 together.
"""

from collections.abc import Container, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from muster import Finding, Measurement, Reference, Severity
from muster.model import Json, Metric
from muster_plugins.shared.metric_judgement import judge_single
from muster_plugins.shared.nccl.transport import Transport
from muster_plugins.shared.torch_group import Group

METRIC = "tcp_resent_share"

FINDS = {
    "lossy": "much of what was sent over TCP had to be sent again: a link loses packets",
    "resent_unknown": "the kernel does not tell what had to be sent again over TCP",
}
"""What the findings mean, by the part of their code behind the check's name."""

_COUNTERS = Path("/proc/self/net/snmp")

_FEWEST = 500
"""Of fewer segments, five that are sent again by chance would already be a per cent."""


class Segments(NamedTuple):
    """What the kernel has counted so far; `sent` is without those that were sent again, which are `resent`."""

    sent: int
    resent: int


class Resent(NamedTuple):
    """What is known of the segments that were sent between two looks at the counters."""

    metrics: dict[str, Metric]
    facts: Json


def look() -> str:
    """What the kernel tells about its counters; an empty text where it does not."""
    try:
        return _COUNTERS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def sent_again(before: str, group: Group, transports: Container[Transport]) -> Resent:
    """What this rank's node sent again since the look `before`; of each node, only the first rank tells.

    `transports` are those of NCCL in the whole group: only its sockets use the kernel's TCP, as gloo always does.
    """
    over_tcp = group.backend == "gloo" or "NET/Socket" in transports
    counts = over_tcp and group.local_ranks[group.rank] == 0
    again = resent_between(before, look()) if counts else Resent({}, {})
    return again._replace(facts=again.facts | {"over_tcp": over_tcp})


def resent_between(before: str, after: str) -> Resent:
    """The share of segments that were sent again between two looks, where enough were sent to say anything."""
    try:
        sent, resent = _difference(segments(before), segments(after))
    except ValueError as reason:
        return Resent({}, {"tcp_uncounted": str(reason)})
    metrics: dict[str, Metric] = {METRIC: resent / sent} if sent >= _FEWEST else {}
    return Resent(metrics, {"tcp_segments": {"sent": sent, "resent": resent}})


def segments(text: str) -> Segments:
    """The counters in the text of `/proc/net/snmp`, a line of names and one of values; ValueError if there are none."""
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
    """What was sent again, held against its reference; or that the kernel does not tell, which is no fault."""
    if reason := measurement.facts.get("tcp_uncounted"):
        summary = f"what had to be sent again over TCP is not known: {reason}"
        return [Finding(code=f"{check}.resent_unknown", summary=summary, severity=Severity.INFO)]
    found = judge_single(measurement, references, METRIC, code=f"{check}.lossy")
    return [_with_counts(finding, measurement.facts["tcp_segments"]) for finding in found]


def _with_counts(finding: Finding, counted: JsonValue) -> Finding:
    """The finding in words, with the numbers that its share was made of."""
    assert isinstance(counted, dict)
    of_all = f"{counted['resent']} of {counted['sent']} TCP segments had to be sent again"
    return finding.model_copy(
        update={"summary": f"{of_all}: {finding.summary}", "evidence": finding.evidence | counted}
    )
