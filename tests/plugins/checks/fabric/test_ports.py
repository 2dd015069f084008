"""Which ports the check `fabric` finds down, missing, slow or of the wrong kind."""

import pytest
from tests.plugins.checks.fabric.node import bring_up, take_down

from muster_plugins.checks.fabric import sysfs as fabric_sysfs


def test_a_port_that_was_active_has_four_minutes_to_come_back(tree, node):
    """Down is a warning at once and dropped after four minutes; nothing remains when the port is back."""
    port = tree.plug("mlx5_0")
    tree.plug("mlx5_1")
    watched = node()
    assert watched.look() == {}
    take_down(port)
    assert watched.look() == {"fabric.port_down": "WARNING"}
    watched.clock += 240
    dropped = watched.findings()
    assert {code: each.severity for code, each in dropped.items()} == {
        "fabric.port_down": "WARNING",
        "fabric.port_drop": "ERROR",
    }
    assert dropped["fabric.port_drop"].evidence["ports"] == {"mlx5_0/1": 270.0}
    bring_up(port)
    assert watched.look() == {}


def test_a_port_that_comes_and_goes_three_times_flaps(tree, node):
    """Each time it was down for longer than 25 s, but never long enough to be dropped."""
    port = tree.plug("mlx5_0")
    watched = node()
    for _ in range(3):
        bring_up(port)
        assert watched.look() == {}
        take_down(port)
        for _ in range(2):
            assert watched.look() == {"fabric.port_down": "WARNING"}
    bring_up(port)
    assert watched.look() == {"fabric.port_flap": "ERROR"}


def test_a_port_that_was_never_active_is_named_and_not_judged(tree, node):
    """Nobody knows whether the port should be cabled, so it is neither a fault nor healthy."""
    tree.plug("mlx5_0")
    take_down(tree.plug("mlx5_1"))
    assert node().look() == {"fabric.port_not_judged": "SKIPPED"}


@pytest.mark.parametrize("table", [{"ports": 2}, {"devices": {"mlx5_1": 400}}])
def test_a_demanded_port_that_is_down_is_a_fault_at_once(tree, node, table):
    """The settings require the port, so the first reading reports it."""
    tree.plug("mlx5_0")
    take_down(tree.plug("mlx5_1"))
    finding = node(**table).findings()["fabric.ports_missing"]
    assert (finding.severity, finding.evidence["listed"]) == ("ERROR", ["mlx5_1/1 is DOWN (Disabled)"])


def test_more_ports_than_demanded_may_be_idle(tree, node):
    """Two ports must be active; a third port without a cable is not required."""
    tree.plug("mlx5_0")
    tree.plug("mlx5_1")
    take_down(tree.plug("mlx5_2"))
    assert node(ports=2).look() == {"fabric.port_not_judged": "SKIPPED"}


def test_a_device_that_was_there_is_missed(tree, node):
    """A device that was present once must stay, and has the same time to return as a port that is down.

    Clouds take the device of a virtual machine away for a moment when they serve the host.
    """
    tree.plug("mlx5_0")
    tree.plug("mlx5_1")
    watched = node()
    assert watched.look() == {}
    tree.unplug("mlx5_1")
    (down,) = watched.findings().values()
    assert (down.code, down.severity, down.evidence["listed"]) == (
        "fabric.port_down",
        "WARNING",
        ["mlx5_1/1 is not there"],
    )
    watched.clock += 240
    assert watched.findings()["fabric.port_drop"].evidence["ports"] == {"mlx5_1/1": 270.0}
    tree.unplug("mlx5_0")
    assert watched.findings()["fabric.port_down"].evidence["count"] == 2
    tree.plug("mlx5_0")
    assert watched.look() == {"fabric.port_down": "WARNING", "fabric.port_drop": "ERROR"}


@pytest.mark.parametrize("table", [{"ports": 2}, {"devices": {"mlx5_1": 400}}])
def test_a_demanded_device_that_goes_is_a_fault_at_once(tree, node, table):
    """The settings say that it must be there."""
    tree.plug("mlx5_0")
    tree.plug("mlx5_1")
    watched = node(**table)
    assert watched.look() == {}
    tree.unplug("mlx5_1")
    (finding,) = watched.findings().values()
    assert (finding.code, finding.evidence["listed"]) == ("fabric.ports_missing", ["mlx5_1/1 not there"])


def test_a_virtual_function_may_go(tree, node):
    """It moves into the container that uses it, and back again."""
    tree.plug("mlx5_0")
    (tree.plug("mlx5_4").parents[1] / "device/physfn").mkdir()
    watched = node()
    assert watched.look() == {}
    tree.unplug("mlx5_4")
    assert watched.look() == {}


@pytest.mark.parametrize(
    ("table", "rate", "is_slow"),
    [
        ({"rate_gbitps": 400}, "200 Gb/sec (4X HDR)", True),
        ({"rate_gbitps": 400}, "400 Gb/sec (4X NDR)", False),
        ({"devices": {"mlx5_0": 200}, "rate_gbitps": 400}, "200 Gb/sec (4X HDR)", False),
        ({"devices": {"mlx5_0": 400}}, "100 Gb/sec (1X NDR)", True),
        ({}, "100 Gb/sec (1X NDR)", False),
    ],
)
def test_rates_are_held_against_what_is_expected(tree, node, table, rate, is_slow):
    """A named device has its own rate; without any setting, the first reading judges nothing."""
    tree.plug("mlx5_0", rate=rate)
    assert ("fabric.rate_low" in node(**table).look()) == is_slow


def test_a_port_that_has_become_slower_is_found(tree, node):
    """A link that lost lanes is compared with what it could do before."""
    port = tree.plug("mlx5_0")
    watched = node()
    assert watched.look() == {}
    (port / "rate").write_text("100 Gb/sec (1X NDR)\n")
    assert watched.findings()["fabric.rate_low"].evidence["listed"] == ["mlx5_0/1 runs at 100 of 400 Gbit/s"]


def test_a_port_of_the_wrong_kind_is_named_when_ports_lack(tree, node):
    """Where enough of the expected kind are active, others serve other ends."""
    tree.plug("mlx5_0")
    tree.plug("mlx5_1", layer="Ethernet")
    assert node(expect="ib", ports=1).look() == {}
    assert node(expect="ib", ports=2).look() == {"fabric.ports_missing": "ERROR", "fabric.link_layer": "ERROR"}
    named = node(expect="ib", devices={"mlx5_1": 400})
    assert named.findings()["fabric.link_layer"].evidence["listed"] == ["mlx5_1/1 is Ethernet"]


@pytest.mark.parametrize(("name", "text"), [("state", ""), ("rate", "fast\n")])
def test_a_port_whose_state_or_rate_says_nothing_is_unknown(tree, node, name, text):
    """Neither up nor down, neither fast nor slow."""
    (tree.plug("mlx5_0") / name).write_text(text)
    assert node().look() == {"fabric.unreadable": "UNKNOWN"}


def test_a_port_that_vanishes_while_it_is_read_is_left_out(tree, monkeypatch):
    """Its directory is gone when the last file has been read."""
    tree.plug("mlx5_0")
    tree.plug("mlx5_1")
    whole = fabric_sysfs._PortReader._text

    def unplug_and_read(reader, name, path):
        if name == "link_layer" and "mlx5_1" in str(path):
            tree.unplug("mlx5_1")
        return whole(reader, name, path)

    monkeypatch.setattr(fabric_sysfs._PortReader, "_text", unplug_and_read)
    ports = fabric_sysfs.read_ports(tree.root / "sys", ["mlx5_0", "mlx5_1", "mlx5_2"])
    assert [port.name for port in ports] == ["mlx5_0/1"]


def test_ports_of_a_function_with_two_have_each_their_interface(tree):
    """They are told apart by dev_port, which counts from 0."""
    tree.plug("mlx4_0")
    for number, name in ((0, "net_mlx4_0"), (1, "eth9")):
        (tree.root / "sys/class/infiniband/mlx4_0/device/net" / name).mkdir(exist_ok=True)
        (tree.root / "sys/class/net" / name).mkdir(exist_ok=True)
        (tree.root / "sys/class/net" / name / "dev_port").write_text(f"{number}\n")
    (tree.root / "sys/class/infiniband/mlx4_0/ports/2").mkdir()
    ports = fabric_sysfs.read_ports(tree.root / "sys", ["mlx4_0"])
    assert [(port.name, port.interface) for port in ports] == [("mlx4_0/1", "net_mlx4_0"), ("mlx4_0/2", "eth9")]
