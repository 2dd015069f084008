"""Records of the kernel's log, in both forms in which it is handed out."""

import json

from tests.cases import cases

from muster_plugins.checks.kernel_log.record_parser import Record, journal_records, kmsg_records

# Real lines, as /dev/kmsg and journalctl gave them.
PLAIN = "5,0,0,-;Linux version 6.1.0-18-amd64"
WITH_DEVICE = [
    "6,271,377646,-;virtio-pci 0000:00:01.0: enabling device (0000 -> 0002)",
    " SUBSYSTEM=pci",
    " DEVICE=+pci:0000:00:01.0",
]
JOURNAL = {
    "__MONOTONIC_TIMESTAMP": "4005001",
    "_SOURCE_MONOTONIC_TIMESTAMP": "377646",
    "_KERNEL_DEVICE": "+pci:0000:00:01.0",
    "MESSAGE": "virtio-pci 0000:00:01.0: enabling device (0000 -> 0002)",
}


def test_a_record_of_kmsg_has_number_time_text_and_level():
    """The level is the lower part of the priority; the rest says which program speaks."""
    assert list(kmsg_records([PLAIN])) == [Record(0, 0.0, "Linux version 6.1.0-18-amd64", level=5)]
    assert [record.level for record in kmsg_records(["30,7,8,-;systemd[1]: Started."]) if record] == [6]


def test_the_device_stands_on_a_line_of_its_own():
    """Indented lines belong to the record before them."""
    text = WITH_DEVICE[0].partition(";")[2]
    assert list(kmsg_records([*WITH_DEVICE, PLAIN])) == [
        Record(271, 0.377646, text, device="0000:00:01.0", level=6),
        *kmsg_records([PLAIN]),
    ]


def test_escaped_characters_are_put_back():
    """The kernel writes a line break within a record as four characters."""
    line = r"3,7,8000000,-;NVRM: The NVIDIA GPU 0000:b3:00.0\x0aNVRM: fallen off the bus"
    assert list(kmsg_records([line])) == [
        Record(7, 8.0, "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: fallen off the bus", level=3),
    ]


@cases(
    "line",
    [
        "",
        "6,191",
        "6,191,269296,-",
        "six,191,269296,-;text",
        "6,-1,269296,-;text",
        "6," + "9" * 400 + ",1,-;text",
        "\x00\x00\x00",
        "Xid (PCI:0000:66:00): 79",
    ],
)
def test_a_line_that_is_no_record_of_kmsg_is_told_as_such(line):
    """It neither hides its neighbours nor raises."""
    before, garbage, after = kmsg_records([PLAIN, line, PLAIN])
    assert garbage is None
    assert before == after


def test_a_record_of_the_journal_has_the_kernels_own_time():
    """What the journal calls monotonic is when it took the line over."""
    assert list(journal_records([json.dumps(JOURNAL)])) == [
        Record(None, 0.377646, JOURNAL["MESSAGE"], device="0000:00:01.0")
    ]


def test_the_level_comes_from_the_journal_where_it_has_one():
    """It is the same number as in the kernel's own log."""
    (record,) = journal_records([json.dumps(JOURNAL | {"PRIORITY": "3"})])
    assert record is not None
    assert record.level == 3


def test_text_that_is_not_utf8_comes_from_the_journal_as_numbers():
    """What cannot be decoded is replaced."""
    line = json.dumps(JOURNAL | {"MESSAGE": [72, 105, 255]})
    assert list(journal_records([line])) == [Record(None, 0.377646, "Hi\ufffd", device="0000:00:01.0")]


@cases(
    "line",
    [
        "",
        "{",
        "[]",
        "17",
        "null",
        json.dumps({"MESSAGE": "no time"}),
        json.dumps(JOURNAL | {"MESSAGE": None}),
        json.dumps(JOURNAL | {"MESSAGE": [72, 900]}),
        json.dumps(JOURNAL | {"_SOURCE_MONOTONIC_TIMESTAMP": "soon"}),
    ],
)
def test_a_line_that_is_no_record_of_the_journal_is_told_as_such(line):
    """It neither hides its neighbours nor raises."""
    assert [record is None for record in journal_records([line, json.dumps(JOURNAL)])] == [True, False]
