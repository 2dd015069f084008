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
