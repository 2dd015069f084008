"""Whether something keeps the clock of this host right."""

import ctypes

from muster.doctor.setup_finding import SetupFinding
from muster.model import Verdict

_TIME_ERROR = 5
"""The answer of adjtimex(2) while nothing synchronises the clock."""

_TIMEX_BYTES = 256
"""At least the size of `struct timex`: 208 bytes on 64-bit systems. Zeros ask and change nothing."""


def clock() -> SetupFinding:
    """Runs are sorted by time, and certificates and leases have an end: a wrong clock spoils all of these."""
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if state == _TIME_ERROR:
        text = "nothing synchronises the clock of this host; start chrony, systemd-timesyncd or ntpd"
        return SetupFinding("clock", Verdict.WARN, text)
    if state < 0:
        return SetupFinding("clock", Verdict.SKIPPED, "the kernel does not say whether the clock is synchronised")
    return SetupFinding("clock", Verdict.PASS, "the kernel says that the clock is synchronised")
