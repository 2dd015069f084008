"""The counters of a port: where they are in sysfs, and how many errors they have counted in the last hour.

The arithmetic is pure. A rate is never extrapolated: the metric is the number that was added within the last hour. Two
errors half a minute apart are therefore 2 per hour, not 240.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple

from muster import Action

HOUR_S = 3600.0
_MINUTE_S = 60.0


class PortCounter(NamedTuple):
    """A counter of a port: its folder, what an increment means, and the action for too many.

    A counter with a `limit` stops there until it is reset. The others wrap around.
    """

    folder: Literal["counters", "hw_counters", "net"]
    meaning: str
    action: Action
    limit: int | None = None


_LINK = Action.INSPECT_HARDWARE
_PEER = Action.CHECK_APPLICATION

# The limits are the widths of the fields of the attribute PortCounters (InfiniBand specification 16.1.3.5), which the
# kernel shows in sysfs (drivers/infiniband/core/sysfs.c). Retries and timeouts also come from a peer that has died.
COUNTERS = {
    "symbol_error": PortCounter("counters", "bits received wrong", _LINK, 0xFFFF),
    "link_error_recovery": PortCounter("counters", "the link was trained again", _LINK, 0xFF),
    "link_downed": PortCounter("counters", "the link went down", _LINK, 0xFF),
    "port_rcv_errors": PortCounter("counters", "packets received damaged", _LINK, 0xFFFF),
    "port_xmit_discards": PortCounter("counters", "packets not sent for congestion", Action.NONE, 0xFFFF),
    "local_link_integrity_errors": PortCounter("counters", "more errors than the link may have", _LINK, 0xF),
    "excessive_buffer_overrun_errors": PortCounter("counters", "packets lost in the port's buffers", _LINK, 0xF),
    "out_of_sequence": PortCounter("hw_counters", "packets out of sequence", Action.NONE),
    "packet_seq_err": PortCounter("hw_counters", "packets that the peer missed", Action.NONE),
    "local_ack_timeout_err": PortCounter("hw_counters", "packets that nobody acknowledged", _PEER),
    "rnr_nak_retry_err": PortCounter("hw_counters", "connections aborted: the receiver was not ready", _PEER),
    "req_transport_retries_exceeded": PortCounter("hw_counters", "connections aborted after retries", _PEER),
    "roce_slow_restart": PortCounter(
        "hw_counters", "flows that restarted after congestion throttled them", Action.NONE
    ),
    "carrier_changes": PortCounter("net", "the network interface lost or found its carrier", _LINK),
}


def metric_of(counter: str) -> str:
    """The metric for a counter: the increase within the last hour on the worst port."""
    return f"{counter}_per_hour"


def saturated(counters: Mapping[str, int]) -> tuple[str, ...]:
    """The counters that have stopped at their limit."""
    return tuple(name for name, value in counters.items() if value == COUNTERS[name].limit)


class LastHour:
    """The counts of one port within the last hour, kept by the minute."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._read_at = 0.0
        self._by_minute: dict[str, Counter[int]] = {}

    def count(self, counters: Mapping[str, int], now: float) -> dict[str, int]:
        """Adds a reading and returns the increase within the last hour by name; empty at the first reading.

        If a counter fell, it was reset or has wrapped around. The increase in between is unknown, so it adds nothing.
        After a gap of more than an hour only the share of one hour is added.
        """
        share = min(1.0, HOUR_S / max(now - self._read_at, _MINUTE_S))
        counted = {name: counters[name] for name in counters if name in self._before}
        for name, value in counted.items():
            added = max(0, value - self._before[name])
            if added:
                self._by_minute.setdefault(name, Counter())[int(now // _MINUTE_S)] += round(added * share)
        self._before.update(counters)
        self._read_at = now
        self._forget(now)
        return {name: self._by_minute[name].total() if name in self._by_minute else 0 for name in counted}

    def _forget(self, now: float) -> None:
        begin = int((now - HOUR_S) // _MINUTE_S)
        for name, minutes in self._by_minute.items():
            self._by_minute[name] = Counter({minute: count for minute, count in minutes.items() if minute > begin})
