"""The lines of a hardware error become one record. The lines are from public reports, shortened."""

from muster_plugins.checks.kernel_log.hardware_records import MOST_LINES, MOST_REPORTS, HardwareRecords
from muster_plugins.checks.kernel_log.record_parser import Record

FIRST = [
    "{1}[Hardware Error]: event severity: recoverable",
    "{1}[Hardware Error]:  Error 0, type: fatal",
    "{1}[Hardware Error]:   section_type: PCIe error",
]
CHATTER = "usb 1-1: new high-speed USB device"


def joined(*texts):
    hardware = HardwareRecords()
    records = [Record(number, float(number), text) for number, text in enumerate(texts)]
    return [(whole.seq, whole.text) for record in records for whole in hardware.add(record)] + [
        (whole.seq, whole.text) for whole in hardware.rest()
    ]


def test_a_section_becomes_one_record():
    """It has the number and the time of its first line."""
    said = "[Hardware Error]: event severity: recoverable\nError 0, type: fatal\nsection_type: PCIe error"
    assert joined(*FIRST) == [(0, said)]


def test_other_lines_pass():
    """Also those between the lines of a section, which another CPU printed."""
    assert joined(FIRST[0], CHATTER, *FIRST[1:])[0] == (1, CHATTER)
    assert len(joined(FIRST[0], CHATTER, *FIRST[1:])) == 2


def test_each_section_is_a_record():
    """An error of firmware may have several, of different severity and kind."""
    texts = [
        *FIRST,
        "{1}[Hardware Error]:  Error 1, type: corrected",
        "{1}[Hardware Error]:   section_type: memory error",
    ]
    assert [text.splitlines()[-1] for _, text in joined(*texts)] == [
        "section_type: PCIe error",
        "section_type: memory error",
    ]
    assert "recoverable" not in joined(*texts)[1][1]


def test_two_reports_do_not_mix():
    """A report has its number in every line."""
    texts = [*FIRST, "{2}[Hardware Error]: event severity: corrected", "{2}[Hardware Error]:  Error 0, type: corrected"]
    assert [text.count("\n") for _, text in joined(*texts)] == [2, 1]
    assert joined(*FIRST, "{2}[Hardware Error]:   section_type: memory error")[0][1].startswith("{2}")


def test_a_machine_check_ends_with_its_processor():
    """So it is known at once, and not only with the next error."""
    hardware = HardwareRecords()
    texts = [
        "mce: [Hardware Error]: CPU 1: Machine Check: 0 Bank 5: bea0000000000108",
        "mce: [Hardware Error]: TSC 0 ADDR 1ff",
        "mce: [Hardware Error]: PROCESSOR 2:870f10",
    ]
    whole = [[record.text for record in hardware.add(Record(1, 1.0, text))] for text in texts]
    assert whole == [
        [],
        [],
        ["[Hardware Error]: CPU 1: Machine Check: 0 Bank 5: bea0000000000108\nTSC 0 ADDR 1ff\nPROCESSOR 2:870f10"],
    ]


def test_lines_of_amds_decoder_pass():
    """Each says by itself what it means."""
    texts = ["[Hardware Error]: Corrected error, no action required.", "[Hardware Error]: cache level: L3/GEN"]
    assert [text for _, text in joined(*texts)] == texts


def test_no_more_is_kept_than_a_section_has():
    """A log of nothing but such lines takes no memory."""
    texts = [*FIRST, *["{1}[Hardware Error]:   more"] * 1000]
    assert max(text.count("\n") for _, text in joined(*texts)) < MOST_LINES


def test_reports_of_several_cpus_stay_apart():
    """Their lines are mixed when they print at the same time; the number in braces says whose each is."""
    other = [line.replace("{1}", "{2}").replace("fatal", "corrected") for line in FIRST]
    mixed = [line for both in zip(FIRST, other, strict=True) for line in both]
    assert [text for _, text in joined(*mixed)] == [text for _, text in joined(*FIRST, *other)]


def test_the_number_of_reports_is_bounded():
    """The oldest is taken as complete."""
    texts = [f"{{{number}}}[Hardware Error]: event severity: fatal" for number in range(MOST_REPORTS + 1)]
    hardware = HardwareRecords()
    complete = [whole for n, text in enumerate(texts) for whole in hardware.add(Record(n, float(n), text))]
    assert [whole.seq for whole in complete] == [0]
