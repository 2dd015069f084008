"""What NCCL logs about the paths of its data."""

from collections import Counter

import pytest
from tests.cases import cases

from muster_plugins.shared.nccl.transport import connections, count, explanation, facts, judge_transport

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


RECORDED = {
    # https://github.com/NVIDIA/nccl/issues/1189
    "node-6:4015539:4015652 [0] NCCL INFO Channel 07/0 : 0[0] -> 2[0] [receive] via NET/IB/3/GDRDMA": "NET/IB",
    "node-6:4015540:4015653 [1] NCCL INFO Channel 00/0 : 3[1] -> 2[0] via P2P/CUMEM": "P2P",
    # https://github.com/NVIDIA/nccl/issues/1357
    "node-19:49360:49467 [6] NCCL INFO Channel 11/0 : 6[6] -> 14[6] [send] via NET/IBext/3/GDRDMA": "NET/IBext",
    # A network card that another GPU of the node is closer to.
    "node-1:95:131 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/2(3)/GDRDMA": "NET/IB",
    # Logs of Ray on GKE with the network gIB, with the mark that Ray puts in front.
    "(Worker pid=2050, ip=192.0.2.7) node-7:2050:3084 [0] NCCL INFO Channel 03/0 : 2[2] -> 11[3] [send] via "
    "NET/gIB/3/GDRDMA": "NET/gIB",
    "(Worker pid=1876, ip=192.0.2.7) node-7:1876:2960 [0] NCCL INFO NET/gIB : Initializing gIB v1.0.6": None,
    # NCCL 2.20.5 over A100, 2.1x over H800, and versions before 2.12.
    "node-1:880:888 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/direct pointer/read": "P2P",
    "node-1:422771:422793 [7] NCCL INFO Channel 05/0 : 7[7] -> 4[4] via P2P/direct pointer": "P2P",
    "node-1:175945:177561 [0] NCCL INFO Channel 00 : 1[60] -> 0[60] [receive] via NET/Socket/0": "NET/Socket",
    "node-1:422771:422789 [3] NCCL INFO NVLS comm 0x5598478b07c0 headRank 1 nHeads 8 buffSize 4194304 memSize 2097152 "
    "nvlsPerRankSize 201326592 nvlsTotalSize 1610612736": "NVLS",
    "node-1:227602:227667 [0] NCCL INFO NVLS multicast support is available on dev 0": None,
    "node-1:227602:227667 [0] NCCL INFO NVLS Head  0:  0  8 16": None,
    "node-1:227602:227667 [0] NCCL INFO Channel 00/16 :    0   7   6   5   4   3   2   1   8  15  14  13  12": None,
    "node-1:422771:422792 [6] NCCL INFO Connected NVLS tree": None,
    "node-1:880:887 [0] NCCL INFO NET/Socket : Using [0]eth0:192.0.2.1<0>": None,
    "node-1:880:887 [0] NCCL INFO NET/IB : No device found.": None,
}
"""Lines of NCCL in public reports, names and addresses of nodes replaced; what connection each tells of."""


@cases(("line", "transport"), RECORDED.items())
def test_recorded_lines_are_understood(line, transport):
    """A connection counts once, under the name of its network; what is only available or planned counts nothing."""
    assert count([line]) == ({transport: 1} if transport else {})


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


def test_a_wrong_transport_is_explained_by_what_nccl_logged(tmp_path):
    """Once for all processes of the node, in NCCL's order and without the lines of its channels; few and short."""
    why = [
        "INFO Bootstrap : Using ens3:172.31.12.21<0>",
        "INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file",
        "INFO Failed to open libibverbs.so[.1]",
        "INFO NET/IB : No device found.",
        "INFO Using network Socket",
    ]
    other = ["INFO NCCL_KEY set by environment to hush", "INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/Socket/0"]
    for process in (1, 2):
        log = "".join(f"h:{process}:2 [0] NCCL {line}\n" for line in why + other)
        (tmp_path / f"nccl.h.{process}.log").write_text(log)
    group = {"nodes": 2, "world_size": 2}
    wrong, right = (
        facts(expected, Counter({"NET/Socket": 2}), ["NET/Socket"]) | group for expected in ("NET/gIB", "NET/Socket")
    )
    assert explanation(wrong, tmp_path) == {"nccl_log": why}
    assert explanation(right, tmp_path) == {}
    (tmp_path / "nccl.h.0.log").write_text("".join(f"NCCL WARN {number} {'x' * 500}\n" for number in range(1000)))
    quoted = explanation(wrong, tmp_path)["nccl_log"]
    assert isinstance(quoted, list)
    assert (len(quoted), {len(str(line)) for line in quoted}) == (40, {240})


@cases(
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
