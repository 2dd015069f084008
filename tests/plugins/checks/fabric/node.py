"""A node with ports, as trees that look like sysfs. Their values are synthetic, in the form that mlx5 writes."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from muster import Config, Context, Device, Measurement
from muster.config import Settings
from muster.references import applicable, shipped
from muster_plugins.checks.fabric import check as fabric
from muster_plugins.checks.fabric.check import judge
from muster_plugins.checks.fabric.counters import COUNTERS
from muster_plugins.shared.no_params import NoParams

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
        self._drivers = root / "sys/bus/pci/drivers/mlx5_core"
        self._functions: dict[str, Path] = {}

    def plug(self, device: str, *, layer: str = "InfiniBand", rate: str = "400 Gb/sec (4X NDR)") -> Path:
        """Adds a device with one active port and counters at 0; gives the port's directory."""
        port = self.root / "sys/class/infiniband" / device / "ports/1"
        interface = f"net_{device}"
        for folder in ("counters", "hw_counters"):
            (port / folder).mkdir(parents=True)
        function = self._function(device)
        (self.root / "sys/class/infiniband" / device / "device").symlink_to(function)
        (function / "net" / interface).mkdir(parents=True)
        (function / "infiniband" / device).mkdir(parents=True)
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

    def _function(self, device: str) -> Path:
        """The PCI function of a device, which its driver has."""
        function = self._functions.get(device)
        if function is None:
            address = f"0000:{len(self._functions):02x}:00.0"
            function = self._functions[device] = self.root / "sys/devices" / address
            self._drivers.mkdir(parents=True, exist_ok=True)
            (self._drivers / address).symlink_to(function)
        return function

    def share(self, *, exclusively: bool) -> None:
        """Sets the kernel's mode for RDMA devices in network namespaces."""
        mode = self.root / "sys/module/ib_core/parameters/netns_mode"
        mode.parent.mkdir(parents=True)
        mode.write_text("N\n" if exclusively else "Y\n")

    def move_to_pod(self, device: str) -> None:
        """Takes the device and its interface into another network namespace; the PCI function stays."""
        shutil.rmtree(self.root / "sys/class/infiniband" / device)
        shutil.rmtree(self.root / f"sys/class/net/net_{device}")
        for kind in ("net", "infiniband"):
            shutil.rmtree(self._functions[device] / kind)

    def unplug(self, device: str) -> None:
        self.move_to_pod(device)
        (self._drivers / self._functions.pop(device).name).unlink()


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
