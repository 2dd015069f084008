"""What NCCL logs about the paths of its data."""

from collections import Counter

import pytest

from muster_plugins.nccl.transport import connections, count, facts, judge_transport

LOG = """\
node-a:101:201 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>
node-a:101:201 [0] NCCL INFO Using network IB
node-a:101:201 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
node-a:101:201 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/IPC/read
node-a:101:201 [0] NCCL INFO Channel 00 : 1[4a000] -> 0[44000] via SHM/direct/direct
node-a:101:201 [0] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/IB/3/GDRDMA
node-a:101:201 [0] NCCL INFO Channel 01/0 : 9[1] -> 0[0] [receive] via NET/gIB/0/GDRDMA
node-a:101:201 [0] NCCL INFO Channel 02/0 : 9[1] -> 0[0] [receive] via NET/AWS Libfabric/0
node-a:101:201 [0] NCCL INFO Channel 03/0 : 9[1] -> 0[0] [receive] via NET/IBext_v8/2
node-a:101:201 [0] NCCL INFO Channel 04/0 : 9[1] -> 0[0] [receive] via NET/Socket/0
node-a:101:201 [0] NCCL INFO NVLS comm 0x5581 headRank 0 nHeads 8 buffSize 1048576
node-a:101:201 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels
node-a:101:201 [0] NCCL INFO Channel 05/0 : 9[1] -> 0[0] [rece"""


def test_connections_are_counted_by_transport():
    """In the words of several versions; a line that is cut off counts nothing."""
    assert count(LOG.splitlines()) == {
        "P2P": 2,
        "SHM": 1,
        "NET/IB": 1,
        "NET/gIB": 1,
        "NET/AWS Libfabric": 1,
        "NET/IBext_v8": 1,
        "NET/Socket": 1,
        "NVLS": 1,
    }


def test_the_logs_of_all_processes_in_the_directory_are_read(tmp_path):
    """Whatever else lies there, and whatever bytes are in them."""
    (tmp_path / "nccl.node-a.1.log").write_text(LOG, encoding="ascii")
    (tmp_path / "nccl.node-a.2.log").write_bytes(b"\xff\x00" * 10_000 + b"\nx NCCL INFO Channel 0 : 0 -> 1 via P2P\n")
    (tmp_path / "other.log").write_text(LOG, encoding="ascii")
    assert connections(tmp_path)["P2P"] == 3


@pytest.mark.parametrize(
    ("expected", "own", "group", "nodes", "code"),
    [
        (None, ["NET/Socket"], ["NET/Socket"], 2, None),
        ("NET/gIB", ["P2P", "NET/gIB"], ["P2P", "NET/gIB"], 2, None),
        ("NET/gIB", ["P2P", "NET/Socket"], ["NET/gIB", "NET/Socket"], 2, "wrong_transport"),
        ("NET/gIB", ["P2P"], ["P2P", "NET/gIB"], 2, None),
        ("NET/gIB", [], [], 2, "transport_unknown"),
        ("NET/gIB", ["P2P"], ["P2P"], 1, None),
        ("NET/IB", ["NET/IBext_v8"], ["NET/IBext_v8"], 2, None),
        ("NET", ["NET/IB", "SHM"], ["NET/IB", "SHM"], 1, "wrong_transport"),
        ("NET", ["NET/IB"], ["NET/IB"], 1, None),
        ("P2P", ["NVLS"], ["NVLS"], 1, None),
        ("P2P", ["P2P", "SHM"], ["P2P", "SHM"], 1, "wrong_transport"),
        ("P2P", ["P2P", "NET/IB"], ["P2P", "NET/IB"], 2, None),
    ],
)
def test_the_transport_is_compared_with_the_expected_one(expected, own, group, nodes, code):
    """A wrong one convicts whoever used it; that nobody used the right one is not known for sure."""
    known = facts(expected, Counter(own), group) | {"nodes": nodes, "world_size": 8 * nodes}
    assert [each.code for each in judge_transport("collective", known)] == ([f"collective.{code}"] if code else [])


@pytest.mark.parametrize(
    ("expected", "nodes", "world_size"), [("P2P", 1, 1), ("NET", 1, 1), ("P2P", 2, 2), ("NVLS", 2, 2)]
)
def test_what_cannot_be_used_is_not_missed(expected, nodes, world_size):
    """A single GPU sends nothing, and nodes with one each send nothing within a node."""
    known = facts(expected, Counter(), []) | {"nodes": nodes, "world_size": world_size}
    assert judge_transport("collective", known) == []


@pytest.mark.parametrize(
    ("group", "fabric"), [(["P2P", "NET/gIB"], "gIB"), (["P2P"], None), (["NET/IB", "NET/Socket"], None)]
)
def test_the_fabric_is_the_one_network_that_was_used(group, fabric):
    """References can be keyed by it."""
    assert facts(None, Counter(), group)["fabric"] == fabric
