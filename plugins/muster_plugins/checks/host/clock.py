"""Whether the host's clock is synchronised. The kernel knows; no privileges, programs or network are needed."""

import ctypes
import os
from collections.abc import Mapping

from muster import Context, Finding, Measurement, Reference, Severity
from muster_plugins.checks.host.look import CannotDetermine
from muster_plugins.shared.listed_finding import listed_finding
from muster_plugins.shared.metric_judgement import judge_single, single_metric

FINDS = {
    "host.clock_unsynchronised": "no program synchronises the clock",
    "host.clock_off": "the clock is off",
}

_GIVEN_UP_S = 16.0
"""NTP_PHASE_LIMIT of linux/timex.h: the error bound grows to this value if no program tells the kernel the time.

chronyd without `rtcsync` keeps the clock right, and so the error small, but never reports it as synchronised.
"""

_STA_UNSYNC = 0x0040  # linux/timex.h
_STA_NANO = 0x2000  # the offset is in nanoseconds instead of microseconds


class _Timex(ctypes.Structure):
    """struct timex of 64-bit Linux, up to the last field read here; the kernel writes 208 bytes."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 20),
    )


def look(context: Context) -> Measurement:
    """Offset and error bound of the clock in seconds, and whether it is synchronised."""
    timex = _Timex(modes=0)  # only reads, so any user may call it
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
        raise CannotDetermine(f"adjtimex: {os.strerror(ctypes.get_errno())}")
    return Measurement(
        metrics={
            "clock_offset_s": abs(timex.offset) / (1e9 if timex.status & _STA_NANO else 1e6),
            "clock_max_error_s": timex.maxerror / 1e6,
        },
        facts={"clock_synchronised": not timex.status & _STA_UNSYNC},
    )


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Findings for a clock that is not synchronised, or further off than the reference allows."""
    most_s = single_metric(measurement, "clock_max_error_s") or 0.0
    if not measurement.facts.get("clock_synchronised", True):
        parts = [f"it may be off by {most_s:g} s or more"] if most_s >= _GIVEN_UP_S else []
        return listed_finding(FINDS, "host.clock_unsynchronised", Severity.WARNING, parts)
    return judge_single(measurement, references, "clock_offset_s", code="host.clock_off")
