"""One reading of a node's fabric: its ports, the operator's expectations, and the software for the fabric."""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from muster import Measurement, Section
from muster.model import Data, Metric
from muster_plugins.checks.fabric.counters import COUNTERS, metric_of
from muster_plugins.checks.fabric.history import PortReading
from muster_plugins.checks.fabric.software import GpuDirect

FabricKind = Literal["ib", "roce", "gib"]

_LINK_LAYERS: dict[FabricKind | None, str] = {"ib": "InfiniBand", "roce": "Ethernet", "gib": "Ethernet"}


class Expectation(Section):
    """The settings that say which ports must exist."""

    expect: FabricKind | None = Field(None, description="ib, roce or gib: the node's fabric; unset: any or none")
    ports: int | None = Field(
        None, ge=0, le=1024, description="Ports that must be active; unset: every port that has been active"
    )
    rate_gbitps: float | None = Field(None, gt=0, description="Rate of every port; unset: the highest rate so far")
    devices: dict[str, Annotated[float, Field(gt=0)]] = Field(
        {}, description="Devices that must exist, each with the rate of its ports in Gbit/s"
    )

    @property
    def least_ports(self) -> int:
        """How many ports must be active; at least one if a fabric is expected."""
        return self.ports if self.ports is not None else int(self.expect is not None)

    @property
    def link_layer(self) -> str | None:
        """The link layer that every port must have; None if no fabric is expected."""
        return _LINK_LAYERS.get(self.expect)

    @property
    def is_any(self) -> bool:
        """Whether any port is expected."""
        return bool(self.least_ports or self.devices)


class FabricReading(Data):
    """One reading. `gone` has ports that were active before and are missing now, with the seconds since then.

    `elsewhere` are devices in other network namespaces: their names, or their PCI addresses if they were never seen.
    """

    expectation: Expectation = Expectation()
    ports: tuple[PortReading, ...] = ()
    gone: dict[str, float] = {}
    elsewhere: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    gib_missing: tuple[str, ...] = ()
    gpu_direct: GpuDirect | None = None

    @property
    def fitting(self) -> tuple[PortReading, ...]:
        """The ports of the expected fabric; all ports if none is expected."""
        layer = self.expectation.link_layer
        return tuple(port for port in self.ports if layer in (None, port.link_layer))

    @property
    def has_too_few(self) -> bool:
        """Whether fewer ports are active than required. A device in another namespace counts as one active port."""
        active = sum(port.active for port in self.fitting)
        return active + len(self.elsewhere) < self.expectation.least_ports

    @property
    def down_s(self) -> dict[str, float]:
        """For each port that was active before, the seconds since it went down or missing."""
        return {port.name: port.down_s for port in self.ports if port.remembered} | self.gone

    @property
    def fabric(self) -> str:
        """The fabric for selecting references: the expected one, or that of the active ports."""
        layers = {port.link_layer for port in self.ports if port.active}
        return self.expectation.expect or ("ib" if "InfiniBand" in layers else "roce" if layers else "none")

    def measurement(self) -> Measurement:
        """The figures of the worst port as metrics, and everything about each port in the facts."""
        metrics: dict[str, Metric] = {
            "active_ports": float(sum(port.active for port in self.fitting)),
            "port_down_s": max(self.down_s.values(), default=0.0),
            "port_reactivations": float(max((port.reactivations for port in self.ports), default=0)),
        }
        for counter in COUNTERS:
            counts = self.counts(counter)
            if counts:
                metrics[metric_of(counter)] = float(max(counts.values()))
        ports = [port.model_dump(mode="json", exclude_defaults=True) for port in self.ports]
        facts = self.model_dump(mode="json", exclude={"ports"}) | {"ports": ports, "fabric": self.fabric}
        return Measurement(metrics=metrics, facts=facts)

    def counts(self, counter: str) -> dict[str, int]:
        """The increase of a counter in the last hour, by port, if it is known."""
        counted = ((port.name, port.counted or {}) for port in self.ports)
        return {name: counts[counter] for name, counts in counted if counter in counts}


class RequiredPorts(NamedTuple):
    """The ports that must be active, and the number of further ports that must exist."""

    ports: tuple[PortReading, ...]
    absent: tuple[str, ...]


def required_ports(reading: FabricReading) -> RequiredPorts:
    """Ports of named devices must be active. If too few are active, every port of the fabric must be.

    Nothing is required of devices in other namespaces. While one of them was never seen, it may be any of the named
    devices, so none of these is absent.
    """
    expectation = reading.expectation
    ports = [port for port in reading.ports if port.device in expectation.devices]
    ports += [port for port in reading.fitting if reading.has_too_few and port not in ports]
    there = {port.device for port in reading.ports}
    gone = [name for name in reading.gone if reading.has_too_few or _device(name) in expectation.devices]
    known = there | set(map(_device, gone)) | set(reading.elsewhere)
    never_seen = any(":" in name for name in reading.elsewhere)
    absent = [*gone, *(name for name in expectation.devices if not never_seen and name not in known)]
    nameless = expectation.least_ports - len(reading.fitting) - len(absent) - len(reading.elsewhere)
    if reading.has_too_few and nameless > 0:
        absent.append(f"{nameless} more {expectation.link_layer or 'ports'}")
    return RequiredPorts(tuple(ports), tuple(absent))


def _device(port: str) -> str:
    """`mlx5_0` of `mlx5_0/1`."""
    return port.partition("/")[0]
