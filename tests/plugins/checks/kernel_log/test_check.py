"""The check `kernel_log` over files, a FIFO and a program in the place of the kernel's log and of the journal."""

import json
import os
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from muster import Config, Device, Skip
from muster.config import Settings
from muster.errors import SettingsError
from muster.model import parse_instant
from muster.references import applicable, shipped
from muster_plugins.checks.kernel_log.check import muster_checks
from muster_plugins.checks.kernel_log.source import LogUnavailable

LOST_GPU = "NVRM: Xid (PCI:0000:66:00): 79, pid=1234, GPU has fallen off the bus."
ECC = "NVRM: Xid (PCI:0000:66:00): 48, pid=1234, DBE"
APPLICATION = "NVRM: Xid (PCI:0000:66:00): 45, pid=1234, Ch 00000002"
CORRECTED = "nvidia 0000:66:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
CHATTER = "usb 1-1: new high-speed USB device"

GPU = Device(index=3, uuid="GPU-3", model="NVIDIA H100 80GB HBM3", pci_address="0000:66:00.0")


class Node:
    """A node whose kernel says what a test has it say."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kmsg = directory / "kmsg"
        self.data_dir = directory / "data"
        self.data_dir.mkdir()
        self.settings = {"kmsg": str(self.kmsg), "journalctl": str(directory / "journalctl")}
        self.said = 0
        self.start()

    def start(self, **settings):
        """Starts the resident process, or starts it again."""
        table = {"data_dir": self.data_dir, "plugins": {"kernel_log": self.settings | settings}}
        self.check: Any
        (self.check,) = muster_checks(Config(Settings.model_validate(table)))

    def says(self, *texts, lost=0):
        with self.kmsg.open("a", encoding="utf-8") as log:
            for text in texts:
                self.said += 1 + lost
                log.write(f"3,{self.said},{int(time.monotonic() * 1e6)},-;{text}\n")

    def measured(self, *devices, expected_gpus=None):
        return self.check.measure(self.check.params(), SimpleNamespace(devices=devices, expected_gpus=expected_gpus))

    def found(self, *devices, expected_gpus=None):
        measurement = self.measured(*devices, expected_gpus=expected_gpus)
        return self.check.judge(measurement, applicable(shipped(), "kernel_log", measurement.facts))

    def codes(self, *devices):
        return [(finding.code, finding.severity, finding.device) for finding in self.found(*devices)]


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    node.says(CHATTER)
    return node


def test_a_log_without_events_gives_no_findings(node):
    """And its rates are zero, which is a measurement."""
    measurement = node.measured(GPU)
    assert node.check.judge(measurement, {}) == []
    assert measurement.metrics == {"machine_checks_corrected_per_day": 0.0, "pcie_corrected_per_h": 0.0}


def test_an_event_is_found_with_all_that_is_known_of_it(node):
    """The device from its address, the line itself, when and how often, and who says that it matters."""
    node.says(ECC, CHATTER, ECC)
    (finding,) = node.found(GPU)
    assert (finding.code, finding.severity, finding.device, finding.action) == (
        "kernel_log.xid",
        "ERROR",
        3,
        "RESET_GPU",
    )
    assert finding.summary == "XID 48, double-bit ECC error, 2 times"
    evidence = finding.evidence
    assert (evidence["xid"], evidence["count"], evidence["line"]) == (48, 2, ECC)
    assert time.time() - 60 < parse_instant(evidence["first"]) <= parse_instant(evidence["last"]) < time.time() + 60


def test_a_device_that_is_not_known_is_told_by_its_address(node):
    """A switch or a network adapter is named by its address, because it is no GPU."""
    node.says(ECC)
    (finding,) = node.found()
    assert (finding.device, finding.evidence["address"]) == (None, "0000:66:00.0")
    assert finding.summary == "XID 48, double-bit ECC error (0000:66:00.0)"


def test_each_device_that_its_driver_reports_is_one_finding(node):
    """Told by the kernel's name for it, with the number of its lines."""
    node.says("nvme nvme2: I/O 0 QID 0 timeout, reset controller", "nvme nvme2: Device not ready; aborting reset")
    node.says("nvme nvme3: I/O 0 QID 0 timeout, reset controller")
    assert [(finding.summary, finding.evidence.get("name")) for finding in node.found()] == [
        ("a disk reports errors or does not answer (nvme2), 2 times", "nvme2"),
        ("a disk reports errors or does not answer (nvme3)", "nvme3"),
    ]


def test_a_time_that_cannot_be_is_taken_for_now(node):
    """A line with an impossible time is a finding and causes no error."""
    with node.kmsg.open("a", encoding="utf-8") as log:
        log.write(f"3,2,{'9' * 20},-;{ECC}\n")
    (finding,) = node.found(GPU)
    assert parse_instant(finding.evidence["last"]) < time.time() + 60


def test_teardown_convicts_nobody(node):
    """Events that a stopped job causes belong to the application."""
    node.says(*[APPLICATION] * 20, APPLICATION.replace("45", "43"))
    assert node.codes(GPU) == [("kernel_log.xid", "INFO", 3)] * 2


def test_a_finding_stands_through_quiet_looks_and_restarts(node):
    """No event is lost and none is counted twice."""
    node.says(LOST_GPU)
    node.found(GPU)
    node.start()
    node.says(LOST_GPU)
    for _ in range(3):
        (finding,) = node.found(GPU)
        assert finding.evidence["count"] == 2


def test_a_reboot_ends_everything(node):
    """What was written down under the id of another boot does not count, and the log is read from its beginning."""
    node.says(LOST_GPU)
    node.found(GPU)
    file = node.data_dir / "kernel_log.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"boot_id": "another"}))
    node.kmsg.write_text("")
    node.said = 0
    node.says(CHATTER)
    node.start()
    assert node.codes(GPU) == []


def test_an_operator_can_clear_what_was_found(node):
    """The command clears all events up to then, permanently."""
    node.says(LOST_GPU)
    assert node.codes(GPU) == [("kernel_log.xid", "ERROR", 3)]
    node.check.clear()
    assert node.codes(GPU) == []
    (node.data_dir / "kernel_log.json").unlink()
    node.start()
    assert node.codes(GPU) == []


def test_an_operator_cannot_clear_where_no_agent_keeps_its_events(node):
    """A directory in which the check has never run is not the agent's."""
    with pytest.raises(FileNotFoundError, match=r"kernel_log\.json"):
        node.check.clear()
    assert not (node.data_dir / "kernel_log.cleared").exists()


def test_lines_that_were_lost_or_are_garbage_are_found(node):
    """Each problem has a count, and the lines between are still recognised."""
    node.found()
    node.says(ECC, lost=5)
    with node.kmsg.open("ab") as log:
        log.write(b"\xff\xfe\x00 rubbish\n\n3,17")
    assert sorted(node.codes(GPU)) == [
        ("kernel_log.lost", "WARNING", None),
        ("kernel_log.unreadable", "INFO", None),
        ("kernel_log.xid", "ERROR", 3),
    ]


def test_corrected_errors_weigh_by_their_rate(node):
    """A few corrected errors are noted; more than the reference allows are a warning that says so."""
    node.says(*[CORRECTED] * 10)
    (finding,) = node.found(GPU)
    assert (finding.code, finding.severity, finding.action) == ("kernel_log.pcie_corrected", "INFO", "NONE")
    node.says(*[CORRECTED] * 1000)
    (finding,) = node.found(GPU)
    assert (finding.severity, finding.action, finding.evidence["bound"]) == ("WARNING", "INSPECT_HARDWARE", 921.6)


def test_a_flood_costs_one_finding(node):
    """100,000 equal lines: one finding, a bounded memory, and less than the 5 s of CPU that were promised."""
    node.says(*[ECC] * 100_000)
    before = time.process_time()
    (finding,) = node.found(GPU)
    assert time.process_time() - before < 5.0
    assert finding.evidence["count"] == 100_000
    assert (node.data_dir / "kernel_log.json").stat().st_size < 2000


def test_what_cannot_be_kept_is_told(node):
    """The finding says why, and the check continues."""
    node.says(ECC)
    node.data_dir.rmdir()
    assert node.codes(GPU) == [("kernel_log.xid", "ERROR", 3), ("kernel_log.not_kept", "INFO", None)]
    node.data_dir.mkdir()
    assert node.codes(GPU) == [("kernel_log.xid", "ERROR", 3)]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"boot_id": 1}', "\x00" * 100])
def test_an_unusable_file_of_standing_events_is_started_again(node, content):
    """The log itself still has the events."""
    (node.data_dir / "kernel_log.json").write_text(content)
    node.says(ECC)
    assert node.codes(GPU) == [("kernel_log.xid", "ERROR", 3)]


@pytest.fixture
def node_with_journal(tmp_path):
    """A node on which only the journal may be read; a program stands in for journalctl and says what is in a file."""
    node = Node(tmp_path)
    program = tmp_path / "journalctl"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat {tmp_path}/journal\n')
    program.chmod(0o755)
    return node


def journal(node, *texts):
    with (node.directory / "journal").open("a", encoding="utf-8") as log:
        for text in texts:
            at = str(time.monotonic_ns() // 1000)
            log.write(json.dumps({"MESSAGE": text, "_SOURCE_MONOTONIC_TIMESTAMP": at}) + "\n")


@pytest.mark.usefixtures("live")
def test_the_journal_stands_in_for_the_log(node_with_journal):
    """The journal is read from the last line that was read, and repeated lines do not count."""
    node = node_with_journal
    journal(node, ECC)
    assert node.codes(GPU) == [("kernel_log.xid", "ERROR", 3)]
    journal(node, ECC)
    with (node.directory / "journal").open("a", encoding="utf-8") as log:
        log.write("{\n")
    node.start()
    xid, unreadable = node.found(GPU)
    assert (xid.evidence["count"], unreadable.code) == (2, "kernel_log.unreadable")
    asked = (node.directory / "asked").read_text().split()
    assert asked[:3] == ["-k", "-o", "json"]
    (since,) = (int(word.removeprefix("--since=@")) for word in asked if word.startswith("--since=@"))
    assert time.time() - 60 < since <= time.time()


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("script", [None, "exit 0", "echo no journal files were opened >&2; exit 1"])
def test_no_log_at_all_is_not_known_to_be_healthy(node_with_journal, script):
    """With GPUs, this is a finding with both reasons; without GPUs, the check is skipped."""
    program = node_with_journal.directory / "journalctl"
    program.write_text(f"#!/bin/sh\n{script}\n") if script else program.unlink()
    (finding,) = node_with_journal.found(GPU)
    assert (finding.code, finding.severity) == ("kernel_log.no_access", "UNKNOWN")
    assert "kmsg: No such file or directory" in finding.summary
    assert "journalctl: " in finding.summary
    assert node_with_journal.found(expected_gpus=8) == [finding]
    with pytest.raises(Skip):
        node_with_journal.found()


def test_simulated_devices_have_no_log(node):
    """The log belongs to the host of the simulated node."""
    with pytest.raises(Skip):
        node.found(GPU.model_copy(update={"simulated": True}))


def test_the_watch_ends_when_something_happens(tmp_path):
    """Chatter and the doings of applications do not end it; it has read all there is when it does."""
    node = Node(tmp_path)
    os.mkfifo(node.kmsg)
    keep_open = os.open(node.kmsg, os.O_RDWR)
    woken = []
    watching = Thread(target=lambda: woken.append(node.check.watch()), daemon=True)
    watching.start()
    node.says(CHATTER, APPLICATION)
    node.says(LOST_GPU, LOST_GPU, CHATTER)
    watching.join(timeout=60)
    assert woken == [None]
    os.close(keep_open)


def test_a_missing_log_cannot_be_watched(tmp_path):
    """The check then keeps to its cadence."""
    with pytest.raises(LogUnavailable, match="No such file"):
        Node(tmp_path).check.watch()


def test_a_file_cannot_be_watched(node):
    """It always has something to read, so that the check would run without end."""
    with pytest.raises(LogUnavailable, match="is a file"):
        node.check.watch()


def test_every_code_that_is_found_is_explained(node):
    """Findings of rules and our own."""
    node.found()
    node.says(ECC, CORRECTED, LOST_GPU, lost=1)
    assert {finding.code for finding in node.found()} <= set(node.check.finds)
    assert {"kernel_log.no_access", "kernel_log.not_kept", "kernel_log.crowded"} <= set(node.check.finds)


@pytest.mark.parametrize(
    ("table", "expected"), [({"error_stands_s": 5}, "error_stands_s"), ({"dmesg": "/dev/kmsg"}, "dmesg")]
)
def test_wrong_settings_are_refused(node, table, expected):
    """With the key that is wrong."""
    with pytest.raises(SettingsError, match=expected):
        node.start(**table)
