"""How much of what a node's ranks sent over TCP they had to send again, because it got lost on the way.

TCP makes up for lost packets, so a link that loses a few is hardly slower than a healthy one. But both of its ends send
much again. The kernel counts that for each connection, and only the connections of the ranks count here: the counters
of the whole host also have what other programs send again. Example: an exporter that cannot reach its server resends
a segment a second, which is more than 0.5 % of the 2,500 segments of a quick run.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue

from muster import Finding, Measurement, Reference, Severity
from muster.model import Json, Metric
from muster_plugins.shared.metric_judgement import judge_single
from muster_plugins.shared.nccl.transport import Transport
from muster_plugins.shared.torch_group import RankGroup

METRIC = "tcp_resent_share"

FINDS = {
    "lossy": "much of what was sent over TCP had to be sent again: a link loses packets",
    "resent_unknown": "the kernel does not tell what had to be sent again over TCP",
}
"""What the findings mean, by the part of their code behind the check's name."""

_FEWEST = 500
"""Of fewer segments, five that are sent again by chance would already be a per cent."""

_RESENT, _SENT = 100, 136
"""Where struct tcp_info has tcpi_total_retrans and, since Linux 4.2, tcpi_segs_out (include/uapi/linux/tcp.h)."""

_INFO_BYTES = 256

_Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class Segments(NamedTuple):
    """How many segments were sent; `sent` is without those that were sent again, which are `resent`."""

    sent: _Count
    resent: _Count


class Counters(NamedTuple):
    """What the kernel has counted for a connection, modulo 2^32: all segments, and those that were sent again."""

    all: int
    resent: int


class Resent(NamedTuple):
    """What is known of the segments that were sent between two looks at the connections."""

    metrics: dict[str, Metric]
    facts: Json


def look() -> dict[str, Counters]:
    """The counters of each TCP connection of this process, by the name that the kernel gives its socket.

    A connection for which the kernel does not count is left out.
    """
    return {name: counters for name, fd in _sockets() if (counters := _counters(fd)) is not None}


def _sockets() -> Iterator[tuple[str, int]]:
    """The sockets of this process: their names, such as `socket:[4711]`, and their descriptors."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # another thread has closed it
            name = str(entry.readlink())
            if name.startswith("socket:"):
                yield name, int(entry.name)


def _counters(fd: int) -> Counters | None:
    try:
        with socket.socket(fileno=os.dup(fd)) as connection:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        return Counters(_counter(info, _SENT), _counter(info, _RESENT))
    except (OSError, struct.error):  # it is no TCP socket, or the kernel is older
        return None


def _counter(info: bytes, offset: int) -> int:
    value: int = struct.unpack_from("I", info, offset)[0]
    return value


def sent_again(before: Mapping[str, Counters], group: RankGroup, transports: Container[Transport]) -> Resent:
    """What the ranks of this rank's node sent again since the look `before`; of each node, only the first rank tells.

    `transports` are those of NCCL in the whole group: only its sockets use the kernel's TCP, as gloo always does.
    """
    if group.backend != "gloo" and "NET/Socket" not in transports:
        return Resent({}, {"over_tcp": False})
    of_node = group.gather_on_node("segments", segments_between(before, look()), Segments)
    again = resent_of(of_node) if group.local_ranks[group.rank] == 0 else Resent({}, {})
    return again._replace(facts=again.facts | {"over_tcp": True})


def segments_between(before: Mapping[str, Counters], after: Mapping[str, Counters]) -> Segments:
    """What was sent between two looks. Connections that were closed in between count for nothing."""
    unused = Counters(0, 0)
    grown = [_growth(before.get(name, unused), now) for name, now in after.items()]
    resent = sum(each.resent for each in grown)
    # The kernel counts a resend before it tries, so one that it could not even send is not among all segments.
    return Segments(max(0, sum(each.all for each in grown) - resent), resent)


def _growth(was: Counters, now: Counters) -> Counters:
    return Counters((now.all - was.all) % 2**32, (now.resent - was.resent) % 2**32)


def resent_of(ranks: list[Segments]) -> Resent:
    """The share of segments that the ranks sent again, if they sent enough to say anything."""
    sent, resent = (sum(counts) for counts in zip(*ranks, strict=True))
    if sent == 0:
        return Resent({}, {"tcp_uncounted": "it does not count the segments of a connection, as Linux does since 4.2"})
    metrics: dict[str, Metric] = {METRIC: resent / sent} if sent >= _FEWEST else {}
    return Resent(metrics, {"tcp_segments": {"sent": sent, "resent": resent}})


def judge_resent(check: str, measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """What was sent again, judged by its reference; or that the kernel does not tell, which is no fault."""
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
