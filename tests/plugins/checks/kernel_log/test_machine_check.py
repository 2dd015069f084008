"""The status of machine checks. The numbers are from public reports, but for those that no report has."""

import pytest
from tests.cases import cases

from muster_plugins.checks.kernel_log.machine_check import is_of_amd, machine_check_kind


@cases(
    ("status", "amd", "kind"),
    [
        (0x9000004000010005, False, "CORRECTED"),  # a Core i5 under load
        (0x8C00004F000800C2, False, "CORRECTED"),  # memory scrubbing of a Xeon
        (0xD42040000000011B, True, "CORRECTED"),  # a DIMM of an EPYC
        (0xBEA0000000000108, True, "UNCORRECTED"),  # a Ryzen that reboots
        (0xB200000000070005, False, "UNCORRECTED"),  # a Core i9 that crashes
        (0xFA00000000400405, False, "UNCORRECTED"),  # a Xeon E7
        (0xA600000000020408, False, "UNREPORTED"),  # at every boot of a NUC
        (0xEE2000000040110A, False, "UNREPORTED"),  # at every boot of an XPS 15
        (0x0000000000000000, False, "INVALID"),
        (0x9C00100000000000, True, "DEFERRED"),
        (0x9C00100000000000, False, "CORRECTED"),  # a count for Intel
    ],
)
def test_the_bits_of_a_status(status, amd, kind):
    """Valid, uncorrected, enabled, context corrupt; bit 44 means a deferred error only for AMD."""
    assert machine_check_kind(status, amd=amd) == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TSC 0 ADDR 1ff MISC d0 SYND 4d000000 IPID 500b000000000", True),
        ("PROCESSOR 2:870f10 TIME 1585120217 SOCKET 0 APIC 2", True),
        ("PROCESSOR 9:900f22 TIME 1585120217 SOCKET 0 APIC 2", True),
        ("PROCESSOR 0:a0653 TIME 1684022949 SOCKET 0 APIC 0", False),
        ("", False),
    ],
)
def test_the_vendor_is_known_by_its_registers_or_its_number(text, expected):
    """2 is AMD and 9 Hygon, which makes the same."""
    assert is_of_amd(text) is expected
