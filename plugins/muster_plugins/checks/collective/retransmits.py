"""The share of TCP segments that the ranks of a node had to send again because they were lost.

TCP repairs the loss of packets, so a link that loses a few packets is hardly slower than a healthy one. But both of its
ends retransmit many segments. The kernel counts them for each connection, and only the ranks' connections to other
hosts count here: the counters of the whole host also have the retransmissions of other programs. Example: an exporter
that cannot reach its server resends a segment a second, which is more than 0.5 % of the 2,500 segments of a quick run.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field, JsonValue

from muster import Finding, Measurement, Reference, Severity
from muster.model import Json, Metric
from muster_plugins.shared.metric_judgement import judge_single

if TYPE_CHECKING:
    from muster_plugins.shared.nccl.transport import Transport
    from muster_plugins.shared.torch_group import RankGroup

METRIC = "tcp_resent_share"

FINDS = {
    "lossy": "many TCP segments were retransmitted: a link loses packets",
    "resent_unknown": "the kernel does not report TCP retransmissions",
}
"""What each finding means, by the part of its code after the check's name."""

_FEWEST = 500
"""With fewer segments, five random retransmissions would already be one percent."""

_RESENT, _SENT = 100, 136
"""Where struct tcp_info has tcpi_total_retrans and, since Linux 4.2, tcpi_segs_out (include/uapi/linux/tcp.h)."""

_COUNTER = struct.Struct("I")
_INFO_BYTES = 256

_Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class Segments(NamedTuple):
    """The number of sent segments; `sent` does not include retransmitted ones, which are `resent`."""

    sent: _Count
    resent: _Count


class Counters(NamedTuple):
    """The kernel's counters of a connection, modulo 2^32: all segments, and retransmitted ones."""

    all: int
    resent: int


ConnectionCounters = Mapping[str, Counters | None]


class Resent(NamedTuple):
    """Facts about the segments that were sent between two readings of the connections."""

    metrics: dict[str, Metric]
    facts: Json


def look() -> ConnectionCounters:
    """The counters of each TCP connection of this process to another host, by the kernel's name of the socket.

    Connections within this host do not count: no link carries them, and a busy host itself drops their packets. The
    counters are None if the kernel does not have them.
    """
    found: dict[str, Counters | None] = {}
    for name, fd in _sockets():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as connection:  # closed, or not connected
            if _leads_to_another_host(connection):
                found[name] = _counters(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES))
    return found


def _sockets() -> Iterator[tuple[str, int]]:
    """The sockets of this process: their names, such as `socket:[4711]`, and their descriptors."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # another thread has closed it
            name = str(entry.readlink())
            if name.startswith("socket:"):
                yield name, int(entry.name)


def _leads_to_another_host(connection: socket.socket) -> bool:
    """Whether it is a TCP connection whose ends have different addresses. OSError if it is not connected."""
    is_tcp = connection.type == socket.SOCK_STREAM and connection.family in (socket.AF_INET, socket.AF_INET6)
    return is_tcp and connection.getpeername()[0] != connection.getsockname()[0]


def _counters(info: bytes) -> Counters | None:
    if len(info) < _SENT + _COUNTER.size:
        return None
    (sent,), (resent,) = _COUNTER.unpack_from(info, _SENT), _COUNTER.unpack_from(info, _RESENT)
    return Counters(sent, resent)


def sent_again(segments: Segments | None, group: "RankGroup", transports: "Container[Transport]") -> Resent:
    """Retransmissions of the ranks of this node, which its first rank reports. This rank has sent `segments`.

    `transports` are those of NCCL in the whole group. Only NCCL's sockets use the kernel's TCP; gloo always does.
    """
    if group.backend != "gloo" and "NET/Socket" not in transports:
        return Resent({}, {"over_tcp": False})
    of_node = group.gather_on_node("segments", segments, Segments | None)
    again = resent_of(of_node) if group.local_ranks[group.rank] == 0 else Resent({}, {})
    return again._replace(facts=again.facts | {"over_tcp": True})


def segments_between(before: ConnectionCounters, after: ConnectionCounters) -> Segments | None:
    """The segments that were sent between two readings; None if the kernel does not count them.

    Connections that were closed in between do not count, so `after` is read while all ranks are still in the group.
    """
    grown = []
    for name, now in after.items():
        if now is None:
            return None
        grown.append(_growth(before.get(name) or Counters(0, 0), now))
    resent = sum(each.resent for each in grown)
    # The kernel counts a retransmission before it tries, so a failed one is not among all segments.
    return Segments(max(0, sum(each.all for each in grown) - resent), resent)


def _growth(was: Counters, now: Counters) -> Counters:
    return Counters((now.all - was.all) % 2**32, (now.resent - was.resent) % 2**32)


def resent_of(ranks: Sequence[Segments | None]) -> Resent:
    """The share of segments that the ranks retransmitted, if they sent enough to judge it."""
    counted = [segments for segments in ranks if segments is not None]
    if len(counted) < len(ranks):
        return Resent({}, {"tcp_uncounted": "the kernel does not count the segments of a connection (needs Linux 4.2)"})
    sent, resent = sum(each.sent for each in counted), sum(each.resent for each in counted)
    metrics: dict[str, Metric] = {METRIC: resent / sent} if sent >= _FEWEST else {}
    return Resent(metrics, {"tcp_segments": {"sent": sent, "resent": resent}})


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
