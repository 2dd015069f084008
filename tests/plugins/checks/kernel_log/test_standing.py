"""What the kernel's log has told and still stands. The lines are as in test_rules.py."""

import copy

import pytest

from muster_plugins.checks.kernel_log.record_parser import Record
from muster_plugins.checks.kernel_log.standing import MOST_KINDS, StandingEvents, StandingTimes, fold

LOST_GPU = "NVRM: Xid (PCI:0000:66:00): 79, pid=1234, GPU has fallen off the bus."
ECC = "NVRM: Xid (PCI:0000:66:00): 48, pid=1234, DBE"
NEW_ACTION = "NVRM: Xid (PCI:0000:66:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
NO_ACTION = "NVRM: Xid (PCI:0000:66:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
APPLICATION = "NVRM: Xid (PCI:0000:66:00): 45, pid=1234, Ch 00000002"
CORRECTED = "nvidia 0000:66:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
CHATTER = "usb 1-1: new high-speed USB device"

WINDOWS = StandingTimes(error_s=1000, other_s=100)
NOTHING = StandingEvents(boot_id="this")


def records(*texts, seq=1, at_s=10.0):
    return [Record(seq + number, at_s + number, text) for number, text in enumerate(texts)]


def after(read, before=NOTHING, now_s=20.0, **options):
    return fold(before, read, now_s=now_s, windows=WINDOWS, **options)


def counts(standing):
    return {(entry.event.code, entry.event.number): entry.count for entry in standing.entries}


def test_repetitions_are_counted():
    """One entry for what happened to what, with the first and the last time and the last line."""
    standing = after(records(ECC, CHATTER, ECC.replace("1234", "9999"), ECC.replace("66", "67")))
    first, other = standing.entries
    assert (first.count, first.first_s, first.last_s) == (2, 10.0, 12.0)
    assert "9999" in first.sample
    assert other.event.address == "0000:67:00.0"


def test_what_was_read_before_is_passed_over():
    """A log that is read again from its beginning doubles nothing."""
    once = after(records(ECC, CHATTER))
    assert after(records(ECC, CHATTER), once) == once
    assert counts(after(records(ECC, CHATTER, ECC), once)) == {("xid", 48): 2}


def test_where_the_source_has_no_numbers_the_time_tells():
    """The journal does not have the kernel's sequence numbers."""
    once = after(records(ECC, ECC))
    from_journal = [record._replace(seq=None) for record in records(ECC, ECC, ECC, ECC)]
    twice = after(from_journal, once)
    assert (counts(twice), twice.seq) == ({("xid", 48): 4}, None)
    assert counts(after(records(ECC, ECC, ECC, ECC, ECC), twice)) == {("xid", 48): 5}


def test_what_stood_before_is_not_touched():
    """A fold is pure."""
    before = after(records(ECC))
    kept = copy.deepcopy(before)
    after(records(ECC, ECC, seq=2, at_s=11.0), before)
    assert before == kept


@pytest.mark.parametrize(("text", "stands_s"), [(LOST_GPU, 1000), (APPLICATION, 100), (CORRECTED, 3600)])
def test_a_quiet_log_heals_nothing_for_a_while(text, stands_s):
    """An error stands longest, and a rate needs its whole period."""
    standing = after(records(text))
    assert len(after([], standing, now_s=10.0 + stands_s).entries) == 1
    assert after([], standing, now_s=10.1 + stands_s).entries == []


def test_old_events_do_not_stand_when_they_are_read_first():
    """An agent that starts on a node that has been up for long brings back nothing from days ago."""
    assert after(records(ECC), now_s=5000.0).entries == []


def test_a_reset_ends_what_asked_for_it():
    """Events of other devices stand, and so do events that a reset does not clear."""
    elsewhere = ECC.replace("66", "67")
    standing = after(records(LOST_GPU, ECC, elsewhere, NEW_ACTION, NO_ACTION))
    assert [entry.sample for entry in standing.entries] == [LOST_GPU, elsewhere]
    standing = after(records("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15", seq=9, at_s=30.0), standing)
    assert LOST_GPU in [entry.sample for entry in standing.entries]
    assert elsewhere not in [entry.sample for entry in standing.entries]


def test_a_reset_also_ends_what_did_not_say_which_gpu_it_means():
    """Whoever needs another reset is told again by the next program that starts."""
    told = "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)"
    assert counts(after(records(told))) == {("reset_required", None): 1}
    assert counts(after(records(told, NO_ACTION))) == {}


def test_gaps_in_the_numbers_are_lost_lines():
    """They are counted from what was read last on, not from the first line that there is."""
    standing = after(records(CHATTER, seq=700))
    assert counts(standing) == {}
    standing = after(records(CHATTER, seq=750), standing)
    assert counts(standing) == {("lost", None): 49}


def test_lines_that_are_no_records_are_counted():
    """They are seen now, whenever they were written."""
    assert counts(after([None, *records(ECC), None])) == {("unreadable", None): 2, ("xid", 48): 1}


def test_what_an_operator_has_cleared_does_not_stand():
    """Later events stand and are counted from one again."""
    standing = after(records(ECC, ECC))
    assert after([], standing, forgiven_s=15.0).entries == []
    assert counts(after(records(ECC, seq=3, at_s=16.0), standing, forgiven_s=15.0)) == {("xid", 48): 1}
    assert after(records(ECC, ECC), forgiven_s=15.0).entries == []


def test_the_number_of_kinds_is_bounded():
    """Errors are kept, and then the latest other events; a finding reports the dropped ones."""
    many = [CORRECTED.replace("66:00", f"{number // 256:02x}:{number % 256:02x}") for number in range(10 * MOST_KINDS)]
    standing = after(records(ECC, *many), now_s=700.0)
    assert len(standing.entries) <= MOST_KINDS + 1
    found = {entry.event.code: entry.count for entry in standing.entries}
    assert found["xid"] == 1
    assert found["crowded"] == len(many) + 1 - (len(standing.entries) - 1)
    assert standing.entries[-1].sample == many[-1]


def test_a_rate_fades():
    """A steady stream settles at its number per period; a burst counts at once."""
    (burst,) = after(records(*[CORRECTED] * 50)).entries
    assert burst.recent_at(burst.last_s) == pytest.approx(50, rel=0.02)
    hourly = [Record(number, 3600.0 * number, CORRECTED) for number in range(1, 100)]
    (steady,) = after(hourly, now_s=3600.0 * 100).entries
    assert steady.recent_at(steady.last_s) == pytest.approx(1.58, abs=0.01)  # 1 + 1/e + 1/e² + …


START = "mlx5_core 0000:53:00.0: firmware version: 28.39.1002"
UP, DOWN = (f"mlx5_core 0000:53:00.0 enp83s0f0np0: Link {state}" for state in ("up", "down"))


@pytest.mark.parametrize(
    ("texts", "severities"),
    [
        ([DOWN], ["WARNING"]),
        ([START, DOWN], ["INFO"]),
        ([START, UP, DOWN], ["WARNING"]),
        ([START, DOWN, UP], []),
        ([START, UP, DOWN, START, DOWN], ["WARNING", "INFO"]),
        ([START.replace("53", "54"), DOWN], ["WARNING"]),
    ],
)
def test_a_link_that_was_never_up_is_no_event(texts, severities):
    """A port without a cable says at the start of its driver that its link is down."""
    assert [entry.event.severity for entry in after(records(*texts)).entries] == severities


def test_a_link_that_was_never_up_is_known_at_the_next_look():
    """The driver may have started in an earlier one."""
    before = after(records(START))
    assert [entry.event.severity for entry in after(records(DOWN, seq=2, at_s=12.0), before).entries] == ["INFO"]


def test_the_lines_of_a_hardware_error_are_one_event():
    """What firmware reports of a disk's link is about that link, not about memory."""
    texts = (
        "event severity: corrected",
        " Error 0, type: corrected",
        "  section_type: PCIe error",
        "  device_id: 0000:60:03.1",
    )
    (entry,) = after(records(*(f"{{10}}[Hardware Error]: {text}" for text in texts))).entries
    assert (entry.event.code, entry.event.address, entry.count) == ("pcie_corrected", "0000:60:03.1", 1)


def test_a_link_that_recovered_is_milder_from_then_on():
    """It keeps its count and its first time; the next failure is an error again."""
    failed = "pcieport 0015:00:00.0: DPC: containment event, status:0x200d, ERR_FATAL received from 0015:01:00.0"
    recovered = "pcieport 0015:00:00.0: AER: device recovery successful"
    (entry,) = after(records(failed, failed, recovered)).entries
    assert (entry.event.code, entry.event.severity) == ("pcie_link_failed", "WARNING")
    assert (entry.count, entry.first_s, entry.last_s) == (2, 10.0, 11.0)
    again = after(records(failed, recovered, failed)).entries
    assert [entry.event.severity for entry in again] == ["WARNING", "ERROR"]
    (entry,) = after(records(failed, recovered, failed, recovered)).entries
    assert (entry.event.severity, entry.count) == ("WARNING", 2)
