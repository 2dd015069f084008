"""The check `fabric`, on trees that look like sysfs. Their values are synthetic, in the form that mlx5 writes."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from muster import Config, Context, Device, Measurement, Skip
from muster.config import Settings
from muster.errors import SettingsError
from muster.references import applicable, shipped
from muster_plugins.fabric import check as fabric
from muster_plugins.fabric import sysfs as fabric_sysfs
from muster_plugins.fabric.check import FabricSettings, judge
from muster_plugins.fabric.counters import COUNTERS
from muster_plugins.fabric.reading import FabricReading
from muster_plugins.no_params import NoParams

GPU = Device(index=0, uuid="GPU-0", model="NVIDIA H200")


def here(*devices: Device, expected_gpus: int | None = None) -> Context:
    """A run's surroundings."""
    return cast("Context", SimpleNamespace(devices=devices, expected_gpus=expected_gpus))


class Tree:
    """A node's sysfs and procfs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "sys/class").mkdir(parents=True)
        (root / "proc").mkdir()

    def plug(self, device: str, *, layer: str = "InfiniBand", rate: str = "400 Gb/sec (4X NDR)") -> Path:
        """Adds a device with one active port and counters at 0; gives the port's directory."""
        port = self.root / "sys/class/infiniband" / device / "ports/1"
        interface = f"net_{device}"
        for folder in ("counters", "hw_counters"):
            (port / folder).mkdir(parents=True)
        (self.root / "sys/class/infiniband" / device / "device/net" / interface).mkdir(parents=True)
        net = self.root / "sys/class/net" / interface
        net.mkdir(parents=True)
        (net / "dev_port").write_text("0\n")
        bring_up(port)
        (port / "rate").write_text(rate + "\n")
        (port / "link_layer").write_text(layer + "\n")
        for name, counter in COUNTERS.items():
            where = net if counter.folder == "net" else port / counter.folder
            (where / name).write_text("0\n")
        return port

    def unplug(self, device: str) -> None:
        shutil.rmtree(self.root / "sys/class/infiniband" / device)
        shutil.rmtree(self.root / f"sys/class/net/net_{device}")


def take_down(port: Path) -> None:
    (port / "state").write_text("1: DOWN\n")
    (port / "phys_state").write_text("3: Disabled\n")


def bring_up(port: Path) -> None:
    (port / "state").write_text("4: ACTIVE\n")
    (port / "phys_state").write_text("5: LinkUp\n")


class Node:
    """The check on one node, from start on: `look` is one run at the time that `clock` says."""

    def __init__(self, tree: Tree, monkeypatch, **table) -> None:
        roots = {"sysfs_root": str(tree.root / "sys"), "proc_root": str(tree.root / "proc")}
        config = Config(Settings.model_validate({"plugins": {"fabric": roots | table}}))
        (self._check,) = fabric.muster_checks(config)
        self.clock = 0.0
        monkeypatch.setattr(fabric, "time", SimpleNamespace(monotonic=lambda: self.clock))

    def measure(self, *devices: Device) -> Measurement:
        self.clock += 30
        return self._check.measure(NoParams(), here(*devices))

    def look(self, *devices: Device) -> dict[str, str]:
        """By code, the severity of each finding but those that every first look has."""
        return {code: each.severity for code, each in self.findings(*devices).items() if "not_yet" not in code}

    def findings(self, *devices: Device):
        measurement = self.measure(*devices)
        found = judge(measurement, applicable(shipped(), "fabric", measurement.facts))
        assert {each.code for each in found} <= set(fabric.FINDS)
        assert len(found) == len({(each.code, each.severity) for each in found}), "one finding for each kind"
        return {each.code: each for each in found}


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def node(tree, monkeypatch):
    return lambda **table: Node(tree, monkeypatch, **table)


def test_nothing_there_and_nothing_expected_is_skipped(node):
    """A node without RDMA is no fault, and no pass either."""
    with pytest.raises(Skip, match="no InfiniBand or RoCE here"):
        node().measure()


def test_a_simulated_node_has_no_fabric(tree, node):
    """What the machine that runs it is connected by says nothing of the fleet."""
    tree.plug("mlx5_0")
    with pytest.raises(Skip, match="simulated"):
        node().measure(GPU.model_copy(update={"simulated": True}))


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"ports": 8}, ["8 more ports not there"]),
        ({"expect": "ib"}, ["1 more InfiniBand not there"]),
        ({"devices": {"mlx5_0": 400, "mlx5_1": 400}}, ["mlx5_0 not there", "mlx5_1 not there"]),
    ],
)
def test_expected_and_absent_is_a_fault(node, table, named):
    """The ports are named, as far as anybody knows their names."""
    finding = node(**table).findings()["fabric.ports_missing"]
    assert (finding.severity, finding.evidence["listed"]) == ("ERROR", named)


@pytest.mark.parametrize(
    ("layer", "table", "key"),
    [("InfiniBand", {}, "ib"), ("Ethernet", {}, "roce"), ("Ethernet", {"expect": "roce"}, "roce")],
)
def test_healthy_ports_pass(tree, node, layer, table, key):
    """With every counter at rest there is nothing to find, and references know the fabric."""
    tree.plug("mlx5_0", layer=layer)
    tree.plug("mlx5_1", layer=layer)
    healthy = node(**table)
    assert set(healthy.findings()) == {"fabric.not_yet_counted"}
    measurement = healthy.measure()
    assert judge(measurement, applicable(shipped(), "fabric", measurement.facts)) == []
    assert measurement.facts["fabric"] == key
    assert measurement.metrics["active_ports"] == 2.0
    assert measurement.metrics["symbol_error_per_hour"] == 0.0


def test_every_judged_metric_is_measured_and_has_a_reference(tree, node):
    """What is promised to be judged can be."""
    tree.plug("mlx5_0")
    watched = node()
    watched.measure()
    measurement = watched.measure()
    (check,) = fabric.muster_checks(Config(Settings()))
    assert set(check.judged) <= set(measurement.metrics)
    assert set(check.judged) == set(applicable(shipped(), "fabric", measurement.facts))


def test_a_port_that_was_active_has_four_minutes_to_come_back(tree, node):
    """Down is a warning at once, dropped after four minutes, and nothing remains when it is back."""
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
    """Nobody knows whether it is meant to be cabled: no fault, and not taken for good."""
    tree.plug("mlx5_0")
    take_down(tree.plug("mlx5_1"))
    assert node().look() == {"fabric.port_not_judged": "SKIPPED"}


@pytest.mark.parametrize("table", [{"ports": 2}, {"devices": {"mlx5_1": 400}}])
def test_a_demanded_port_that_is_down_is_a_fault_at_once(tree, node, table):
    """The settings say that it must be active, so the first look already knows."""
    tree.plug("mlx5_0")
    take_down(tree.plug("mlx5_1"))
    finding = node(**table).findings()["fabric.ports_missing"]
    assert (finding.severity, finding.evidence["listed"]) == ("ERROR", ["mlx5_1/1 is DOWN (Disabled)"])


def test_more_ports_than_demanded_may_be_idle(tree, node):
    """Two ports must be active; a third without a cable is none of them."""
    tree.plug("mlx5_0")
    tree.plug("mlx5_1")
    take_down(tree.plug("mlx5_2"))
    assert node(ports=2).look() == {"fabric.port_not_judged": "SKIPPED"}


def test_a_device_that_was_there_is_missed(tree, node):
    """What was there once since the start has to be there, with the time to come back that a port has that is down.

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
    """Of the device if it is named, else of all; without a word from the operator the first look judges nothing."""
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


@pytest.mark.parametrize(
    ("name", "added", "severity"),
    [
        ("symbol_error", 120, None),
        ("symbol_error", 121, "ERROR"),
        ("link_downed", 1, "WARNING"),
        ("link_downed", 3, "ERROR"),
        ("link_error_recovery", 11, "WARNING"),
        ("local_link_integrity_errors", 1, "ERROR"),
        ("excessive_buffer_overrun_errors", 1, "ERROR"),
        ("port_rcv_errors", 36_001, "WARNING"),
        ("out_of_sequence", 360_001, "WARNING"),
        ("rnr_nak_retry_err", 1, "WARNING"),
        ("carrier_changes", 3, "WARNING"),
    ],
)
def test_errors_within_an_hour_are_judged_by_reference(tree, node, name, added, severity):
    """What a port counts is held against shipped references, and the port is named."""
    tree.plug("mlx5_1")
    port = tree.plug("mlx5_0")
    is_net = COUNTERS[name].folder == "net"
    folder = tree.root / "sys/class/net/net_mlx5_0" if is_net else port / COUNTERS[name].folder
    watched = node()
    (folder / name).write_text("5\n")
    watched.look()
    (folder / name).write_text(f"{5 + added}\n")
    found = watched.findings()
    assert {code: each.severity for code, each in found.items()} == ({f"fabric.{name}": severity} if severity else {})
    if severity:
        assert found[f"fabric.{name}"].evidence["ports"] == {"mlx5_0/1": added}


@pytest.mark.parametrize("after", [0, 2, 2**31])
def test_a_counter_that_wraps_or_is_reset_is_no_error(tree, node, after):
    """No false finding, whatever it starts again from."""
    port = tree.plug("mlx5_0")
    watched = node()
    (port / "hw_counters/rnr_nak_retry_err").write_text(f"{2**32 - 1}\n")
    watched.look()
    (port / "hw_counters/rnr_nak_retry_err").write_text(f"{after}\n")
    assert watched.look() == {}


def test_a_counter_at_its_limit_is_skipped(tree, node):
    """It counts nothing more, so its silence says nothing; after years of use that is no fault either."""
    port = tree.plug("mlx5_0")
    (port / "counters/symbol_error").write_text("65535\n")
    finding = node().findings()["fabric.counter_stopped"]
    assert (finding.severity, finding.evidence["listed"]) == ("SKIPPED", ["mlx5_0/1 symbol_error"])


@pytest.mark.parametrize(
    ("content", "code", "severity"),
    [
        (b"N/A (no PMA)\n", "fabric.unsupported", "SKIPPED"),
        (None, "fabric.unsupported", "SKIPPED"),
        (b"-3\n", "fabric.unreadable", "UNKNOWN"),
        (b"\xff\xfe\n", "fabric.unreadable", "UNKNOWN"),
        (b"garbage" * 1000, "fabric.unreadable", "UNKNOWN"),
        (b"9" * 400, "fabric.unreadable", "UNKNOWN"),
        ("folder", "fabric.unreadable", "UNKNOWN"),
    ],
    ids=["no port counters", "vanished", "negative", "not text", "garbage", "too large", "not a file"],
)
def test_a_counter_that_cannot_be_read_is_named(tree, node, content, code, severity):
    """What a device does not offer is skipped, what is broken is unknown; nothing else is lost by it."""
    path = tree.plug("mlx5_0") / "counters/symbol_error"
    path.unlink()
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    found = node().findings()
    assert found[code].severity == severity
    assert "symbol_error" in found[code].summary
    assert len(found[code].summary) < 300


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP])
def test_what_a_driver_refuses_as_not_offered_is_skipped(tree, node, monkeypatch, number):
    """Virtual functions have the files and answer with an error."""
    path = tree.plug("mlx5_0") / "counters/symbol_error"
    whole = Path.open

    def refuse(self, *arguments, **options):
        if self == path:
            raise OSError(number, os.strerror(number))
        return whole(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert node().look() == {"fabric.unsupported": "SKIPPED"}


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


def test_excluded_devices_are_not_read_at_all(tree, node, monkeypatch):
    """Reading the counters of some devices disturbs them; that they are left out is said."""
    tree.plug("mlx5_0")
    take_down(tree.plug("mlx5_2"))
    tree.plug("mlx5_bond_0")
    opened = []
    whole = Path.open

    def note(self, *arguments, **options):
        opened.append(str(self))
        return whole(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", note)
    finding = node(exclude=["mlx5_2", "mlx5_bond_*"]).findings()["fabric.excluded"]
    assert (finding.severity, finding.evidence["listed"]) == ("SKIPPED", ["mlx5_2", "mlx5_bond_0"])
    assert opened and not any("mlx5_2" in path or "bond" in path for path in opened)


def test_with_every_device_excluded_there_is_nothing_to_measure(tree, node):
    """Said in other words than where there is none."""
    tree.plug("mlx5_0")
    with pytest.raises(Skip, match="is excluded"):
        node(exclude=["*"]).measure()


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


def test_gib_is_looked_for_where_it_is_expected(tree, node, tmp_path):
    """Libraries and configuration, by patterns that the settings may change."""
    tree.plug("mlx5_0", layer="Ethernet")
    files = [str(tmp_path / "gib/lib64/libnccl-net*.so"), str(tmp_path / "gib/configs/*.txtpb")]
    library, configuration = Path(files[0].replace("*", "_internal")), Path(files[1].replace("*", "tuner_config_a4"))
    assert node(gib_files=files).look() == {}
    finding = node(expect="gib", gib_files=files).findings()["fabric.gib_missing"]
    assert (finding.severity, finding.evidence["listed"]) == ("ERROR", files)
    for path in (library, configuration):
        path.parent.mkdir(parents=True)
        path.touch()
    assert node(expect="gib", gib_files=files).look() == {}


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.230.02  Fri Jan 10 16:20:30 UTC 2025\n"


@pytest.mark.parametrize(
    ("module", "kernel", "driver", "expected"),
    [
        ("nvidia_peermem", "5.4.0", PROPRIETARY, {}),
        (None, "6.8.0-1021-gcp", OPEN, {}),
        (None, "5.12.0", OPEN, {}),
        (None, "5.4.0-190-generic", OPEN, {"fabric.no_gpu_direct": "WARNING"}),
        (None, "6.8.0", PROPRIETARY, {"fabric.no_gpu_direct": "WARNING"}),
        (None, "6.8.0", None, {"fabric.gpu_direct_unknown": "UNKNOWN"}),
        (None, "strange", OPEN, {"fabric.gpu_direct_unknown": "UNKNOWN"}),
        ("efa_nv_peermem", "5.4.0", PROPRIETARY, {}),
    ],
)
def test_a_way_to_gpu_memory(tree, node, *, module, kernel, driver, expected):
    """A peer memory module, or dma-buf with a kernel since 5.12 and open driver modules; only where GPUs are."""
    tree.plug("mlx5_0")
    if module:
        (tree.root / "sys/module" / module).mkdir(parents=True)
    (tree.root / "proc/sys/kernel").mkdir(parents=True)
    (tree.root / "proc/sys/kernel/osrelease").write_text(kernel + "\n")
    if driver:
        (tree.root / "proc/driver/nvidia").mkdir(parents=True)
        (tree.root / "proc/driver/nvidia/version").write_text(driver)
    assert node().look(GPU) == expected
    assert node().look() == {}
    (tree.root / "sys/class/infiniband/mlx5_0/ports/1/link_layer").write_text("Ethernet\n")
    assert node(expect="roce").look(GPU) == expected
    assert node().look(GPU) == dict.fromkeys(expected, "SKIPPED"), "a network card like any other"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"expect": "myrinet"}, "expect"),
        ({"ports": -1}, "ports"),
        ({"rate_gbitps": 0}, "rate_gbitps"),
        ({"devices": {"mlx5_0": -1}}, "devices"),
        ({"port": 8}, "port"),
    ],
)
def test_wrong_settings_are_refused(table, message):
    """With the key that is wrong."""
    config = Config(Settings.model_validate({"plugins": {"fabric": table}}))
    with pytest.raises(SettingsError, match=message):
        fabric.muster_configure(config)


def test_output_stays_bounded(tree, node):
    """Two hundred ports that cannot be read make one short finding with a count."""
    ports = [tree.plug(f"mlx5_{number}") for number in range(50)]
    for port in ports:
        (port / "counters/symbol_error").write_text("what")
    finding = node().findings()["fabric.unreadable"]
    assert finding.evidence["count"] == 50
    assert len(finding.evidence["listed"]) == 20
    assert "and 30 more" in finding.summary


def test_facts_give_back_the_reading_for_judging_again(tree, node):
    """The coordinator judges again from what was reported."""
    take_down(tree.plug("mlx5_0"))
    measurement = node(ports=1).measure()
    again = Measurement.model_validate_json(measurement.model_dump_json())
    references = applicable(shipped(), "fabric", again.facts)
    assert judge(again, references) == judge(measurement, references)
    assert FabricReading.model_validate(again.facts).ports[0].state == "DOWN"


def test_settings_default_to_the_real_sysfs():
    """Without settings the node itself is read."""
    assert FabricSettings().sysfs_root == Path("/sys")
