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
    "head",
    [
        "Nov 28 11:45:32 node7 kernel: [ 1229.448791] ",
        "Nov  8 11:45:32 node7 kernel: ",
        "kwi 15 07:56:59 node7 kernel: ",
        "2026-11-28T11:45:32.123456+00:00 node7 kernel: ",
        "1 2026-11-28T11:45:32Z node7 kernel - - - ",
        "<12>1 2026-11-28T11:45:32Z node7 kernel - - - [ 1229.448791] ",
        "kernel: [123.456792] ",
        "[ 1229.448791] ",
        "[Sat Apr  3 05:23:42 2021] ",
        "<4>[ 1229.448791] ",
        "[ 1229.448791][ T2659] ",
        "kern  :warn  : [ 1229.448791] ",
        "kern  :err   : [Sat Apr  3 05:23:42 2021] ",
        "[Nov28 11:45] ",
        "[  +0.004906] ",
        "2026-11-28T11:45:32,123456+00:00 ",
        "[ 1229.448791] node7 kernel: ",
        "Nov 28 11:45:32.123456 node7 kernel: ",
        "2026-11-28T11:45:32+0000 node7 kernel: ",
        "Sat 2026-11-28 11:45:32 UTC node7 kernel: ",
        "1732790732.123456 node7 kernel: ",
        "Nov 28 11:45:32 kernel: ",
        r"\x1b[0;1;31m",
    ],
)
def test_the_head_of_a_program_that_repeats_the_kernel_is_removed(head):
    """Also colours, in both forms in which the log is handed out."""
    text = "nvme nvme0: I/O 42 QID 3 timeout, aborting"
    (record,) = kmsg_records([f"12,7,8000000,-;{head}{text}"])
    assert record == Record(7, 8.0, text, level=4)
    (record,) = journal_records([json.dumps(JOURNAL | {"MESSAGE": head.replace(r"\x1b", "\x1b") + text})])
    assert record is not None
    assert record.text == text


@cases(
    "text",
    [
        "[UFW BLOCK] IN=eth0 OUT= SRC=10.0.0.1",
        "[drm:amdgpu_device_init [amdgpu]] *ERROR* hw_init of IP block <gfx_v11_0> failed -110",
        "{1}[Hardware Error]: event severity: recoverable",
        "systemd[1]: kernel: not what speaks here",
        "kernel BUG at mm/slub.c:4295!",
        "kernel: tainted",
        "nvidia 0000:5d:00.0: kernel: [driver]",
    ],
)
def test_what_only_looks_like_a_head_stays(text):
    """Texts of the kernel that begin with brackets, and those that name the kernel."""
    (record,) = kmsg_records([f"4,7,8000000,-;{text}"])
    assert record is not None
    assert record.text == text


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
