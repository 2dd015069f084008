"""Which places in a group are possible, and which the agent declines."""

from typing import Any

import pytest
from tests.cases import cases

from muster.wire.messages import Prepare
from muster_agent.decide.placement import MOST_RANKS, require_possible
from muster_agent.decide.plan import CannotRun

OWN = "10.0.0.2"


def prepare(**changed: Any) -> Prepare:
    """An order that gives a node ranks 2 and 3 of 4, with these fields `changed` and not validated."""
    said: dict[str, Any] = {"first_rank": 2, "world_size": 4, "master_addr": "10.0.0.1", "master_port": 4000}
    return Prepare.model_construct(**said | changed)


@cases(
    "changed",
    [
        {},
        {"first_rank": 0, "world_size": 2},
        {"first_rank": MOST_RANKS - 2, "world_size": MOST_RANKS},
        {"master_addr": "fe80::1%eth0"},
        {"master_addr": "2001:db8::1"},
        {"master_addr": "gpu-7"},
        {"master_addr": "gpu_7.rack-1.example.com."},
        {"master_addr": "7gpu.example"},
        {"first_rank": 0, "master_addr": "127.0.0.1"},
        {"master_port": 1},
        {"master_port": 65535},
    ],
    ids=str,
)
def test_possible_places_are_accepted(changed):
    """Any address or name of a host, and any ranks below the world size."""
    require_possible(prepare(**changed), 2, OWN)


@cases(
    ("changed", "words"),
    [
        ({"world_size": 2147483000}, "ranks 2 to 3 in a world of 2147483000"),
        ({"world_size": MOST_RANKS + 1}, f"at most {MOST_RANKS}"),
        ({"world_size": 3}, "ranks 2 to 3 in a world of 3"),
        ({"world_size": 0}, "in a world of 0"),
        ({"world_size": -4}, "in a world of -4"),
        ({"first_rank": -1}, "ranks -1 to 0"),
        ({"first_rank": 2147483647, "world_size": 2147483647}, "ranks 2147483647 to 2147483648"),
    ],
    ids=str,
)
def test_an_impossible_world_is_declined(changed, words):
    """The ranks of this node must be in it, and it must not be larger than any cluster."""
    with pytest.raises(CannotRun, match=words) as refused:
        require_possible(prepare(**changed), 2, OWN)
    assert refused.value.reason == "bad_place"


@cases(
    "address",
    [
        *(
            "",
            " ",
            "10.0.0.1 ",
            "http://10.0.0.1",
            "10.0.0.1:80",
            "user@host",
            "a/b",
            "a\nb",
            "a\0b",
            "-a",
            "a..b",
            "ä",
        ),
        *("0.0.0.0", "::", "0", "127.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "1.2.3.256", "224.0.0.1", "ff02::1"),
        *(
            "127.0.0.1",
            "127.8.8.8",
            "::1",
            "::ffff:127.0.0.1",
            "localhost",
            "LOCALHOST.",
            "x" * 64,
            ".".join(["x" * 60] * 5),
        ),
    ],
)
def test_an_impossible_address_of_rank_0_is_declined(address):
    """Text that is no name, a URL, other notations of an IPv4 address, or an address of this node itself."""
    with pytest.raises(CannotRun, match="rank 0 is at") as refused:
        require_possible(prepare(master_addr=address), 2, OWN)
    assert refused.value.reason == "unreachable"


def test_nodes_on_one_host_may_meet_on_loopback():
    """All nodes of a demo fleet are on one host."""
    require_possible(prepare(master_addr="127.0.0.1"), 2, "127.0.0.1")
    require_possible(prepare(master_addr="localhost"), 2, "::1")


@pytest.mark.parametrize("port", [0, -1, 65536, 10**9])
def test_an_impossible_port_is_declined(port):
    """Ports are 1 to 65535."""
    with pytest.raises(CannotRun, match=f"at port {port}"):
        require_possible(prepare(master_port=port), 2, OWN)
