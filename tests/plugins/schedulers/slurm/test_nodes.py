"""What `scontrol show nodes` prints, as data: texts of several versions, and of people who write what they like."""

import pytest
from tests.cases import cases

from muster_plugins.schedulers.slurm.nodes import SlurmNode, read_nodes

HEAD = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=3.45 "
    "AvailableFeatures={features} ActiveFeatures=(null) Gres=gpu:2 NodeAddr=127.0.0.1 NodeHostName=vm Version=22.05.8 "
    "OS=Linux 6.1.0 #1 SMP Debian  RealMemory=1 AllocMem=0 FreeMem=18655 Sockets=8 Boards=1 State={state} "
    "ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A {partitions}BootTime=2026-03-01T08:00:00 "
    "LastBusyTime=2026-03-01T09:00:00 CfgTRES=cpu=8 AllocTRES= CurrentWatts=0 AveWatts=0"
)


def line(tail="", *, name="gpu1", state="IDLE", features="(null)", partitions="Partitions=main,debug  "):
    return HEAD.format(name=name, state=state, features=features, partitions=partitions) + tail + "\n"


def read(text):
    (node,) = read_nodes(text)
    return node


def test_a_node_in_service():
    """Nobody has written anything beside it."""
    assert read(line()) == SlurmNode(name="gpu1", state=("IDLE",), partitions=("main", "debug"))


@pytest.mark.parametrize(
    ("state", "flags"),
    [
        ("IDLE+DRAIN", ("IDLE", "DRAIN")),
        ("DOWN*+DRAIN", ("DOWN", "DRAIN")),
        ("MIXED+DRAIN+REBOOT_REQUESTED+NOT_RESPONDING", ("MIXED", "DRAIN", "REBOOT_REQUESTED", "NOT_RESPONDING")),
        ("IDLE~", ("IDLE",)),
    ],
)
def test_a_state_is_its_flags(state, flags):
    """Signs behind a state, as older versions put them, say nothing that we need."""
    assert read(line(state=state)).state == flags


def test_features_and_partitions_are_lists():
    """A node in no partition has none."""
    node = read(line(features="h100,ib", partitions=""))
    assert (node.features, node.partitions) == (("h100", "ib"), ())


@cases(
    ("tail", "reason", "by", "comment"),
    [
        (" Reason=bad fan [root@2026-03-01T09:30:00]", "bad fan", "root@2026-03-01T09:30:00", ""),
        (" Reason=bad fan [root@2026-03-01T09:30:00] Comment=RMA 17", "bad fan", "root@2026-03-01T09:30:00", "RMA 17"),
        (" Reason=[x] y [op@2026-03-01T09:30:00] Extra={}", "[x] y", "op@2026-03-01T09:30:00", ""),
        (" Reason=from slurm.conf Comment=c Extra=e ReservationName=r", "from slurm.conf", "", "c"),
        (" Reason=one [op@2026-03-01T09:30:00]        two Comment=c", "one two", "op@2026-03-01T09:30:00", "c"),
        (" Comment=a=b [muster:1-7] InstanceId=i-1 InstanceType=t", "", "", "a=b [muster:1-7]"),
        (" Comment=two\nlines", "", "", "two\nlines"),
        (" Reason=State=IDLE [op@2026-03-01T09:30:00]", "State=IDLE", "op@2026-03-01T09:30:00", ""),
    ],
)
def test_what_people_write(tail, reason, by, comment):
    """It may hold spaces, signs and lines, and does not change what Slurm says."""
    node = read(line(tail, state="DOWN"))
    assert (node.state, node.reason, node.reason_by, node.comment) == (("DOWN",), reason, by, comment)


def test_each_line_is_a_node():
    """A comment of several lines ends where the next node begins."""
    assert [node.name for node in read_nodes(line(" Comment=x\n\ny") + line(name="gpu2"))] == ["gpu1", "gpu2"]


@cases("text", ["", "No nodes in the system\n", "Node gpu9 not found\n", "NodeName=gpu1 Arch=x86", "\0"])
def test_what_is_no_node_is_none(text):
    """Nor is the beginning of one."""
    assert read_nodes(text) == []


@pytest.mark.parametrize("state", ["ALLOCATED", "MIXED+DRAIN", "IDLE+COMPLETING"])
def test_jobs_show_in_the_state(state):
    """Also those that are being cleaned up after."""
    assert read(line(state=state)).has_jobs
    assert not read(line()).has_jobs
