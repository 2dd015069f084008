"""Decodes the status of a machine check, of which the kernel logs no more than the number.

The bits have the same meaning for Intel and AMD, except that AMD's `deferred` is a part of Intel's count of corrected
errors. Sources: Intel Software Developer's Manual, volume 3B, 17.3.2.2, IA32_MCi_STATUS; AMD64 Architecture
Programmer's Manual, volume 2, 9.3.2.1, MCA_STATUS.
"""

import re
from enum import StrEnum

_VALID = 1 << 63
_UNCORRECTED = 1 << 61
_ENABLED = 1 << 60
_CONTEXT_CORRUPT = 1 << 57
_DEFERRED_BY_AMD = 1 << 44

_OF_AMD = re.compile(r"PROCESSOR [29]:|\bIPID [0-9a-f]")
"""The vendors AMD and Hygon, or a register that only they have."""


class MachineCheckKind(StrEnum):
    """What a status says. UNREPORTED errors were not corrected, but reporting them was off: firmware leaves some."""

    INVALID = "INVALID"
    CORRECTED = "CORRECTED"
    DEFERRED = "DEFERRED"
    UNREPORTED = "UNREPORTED"
    UNCORRECTED = "UNCORRECTED"


def machine_check_kind(status: int, *, amd: bool) -> MachineCheckKind:
    """The kind of a machine check with this status."""
    if not status & _VALID:
        return MachineCheckKind.INVALID
    if status & (_UNCORRECTED | _CONTEXT_CORRUPT):
        return MachineCheckKind.UNCORRECTED if status & _ENABLED else MachineCheckKind.UNREPORTED
    return MachineCheckKind.DEFERRED if amd and status & _DEFERRED_BY_AMD else MachineCheckKind.CORRECTED


def is_of_amd(text: str) -> bool:
    """Whether the kernel's lines about a machine check are those of a processor of AMD."""
    return _OF_AMD.search(text) is not None
