"""What a busy node with eight GPUs measures, in simulated time: the numbers move as those of real nodes do.

Jobs of some hours run on all GPUs, with pauses between them. Under load a GPU draws 550 to 700 W, its clock goes up and
down in steps of 15 MHz, and its temperatures follow its power slowly. Memory of the host changes with each reading.
Counters of errors stay at zero, as on a healthy node. The runs of `nvml` come from the reading that the plugin makes of
its devices; those of `host`, `fabric` and `kernel_log` have the metrics and facts that a real agent has reported.
"""

import random
from collections.abc import Iterator
from typing import Any

from muster.check import CheckInfo, Needs, Scope
from muster.model import Device, Inventory, Run, Verdict
from muster.wire.messages import InventoryReport
from muster_agent.decide.schedule import spread
from muster_plugins.shared.devices.reading import DeviceReading, NodeReading

CADENCES = {"nvml": 15.0, "kernel_log": 20.0, "fabric": 30.0, "host": 60.0}
"""The checks that run all the time, with the seconds between two runs as shipped."""

GPUS = 8
JOB_S, PAUSE_S = 5 * 3600.0, 1800.0
MEMORY_BYTES = 80 << 30
HOST_BYTES = 2 << 40
ZEROS = (
    "ecc_uncorrected_volatile",
    "ecc_uncorrected_aggregate",
    "ecc_correctable_volatile",
    "ecc_correctable_per_hour",
    "retired_pages",
    "slowed_down_s",
    "pcie_replays",
    "pcie_replays_per_lane_min",
    "nvlink_crc_errors",
    "nvlink_crc_errors_per_s",
    "nvlink_replays",
    "nvlink_replays_per_min",
    "nvlink_recoveries",
    "nvlink_recoveries_per_min",
    "memory_unowned_bytes",
)
FABRIC_ZEROS = (
    "port_down_s",
    "port_reactivations",
    *(
        f"{name}_per_hour"
        for name in (
            "symbol_error",
            "link_error_recovery",
            "link_downed",
            "port_rcv_errors",
            "port_xmit_discards",
            "local_link_integrity_errors",
            "excessive_buffer_overrun_errors",
            "out_of_sequence",
            "packet_seq_err",
            "local_ack_timeout_err",
            "rnr_nak_retry_err",
            "req_transport_retries_exceeded",
            "roce_slow_restart",
            "carrier_changes",
        )
    ),
)


class SimulatedGpu:
    """One GPU, whose temperatures follow its power."""

    def __init__(self, index: int, chance: random.Random) -> None:
        self._index = index
        self._chance = chance
        self._temperature_c = 35.0
        self._used_bytes = 0

    def read(self, *, busy: bool, job: int) -> DeviceReading:
        """The next reading, 15 seconds after the last one."""
        chance = self._chance
        power_w = round(chance.gauss(640, 25) if busy else chance.gauss(72, 0.8), 1)
        self._temperature_c += (30 + power_w / 20 - self._temperature_c) * 0.15 + chance.gauss(0, 0.3)
        celsius = round(self._temperature_c)
        clock = 15 * round(chance.gauss(1755, 40) / 15) if busy else 345
        if busy and self._used_bytes % 7 != job % 7:
            self._used_bytes = (chance.randrange(30_000, 38_000) * (2 << 20)) // 7 * 7 + job % 7
        numbers: dict[str, float] = {
            "temperature_c": celsius,
            "temperature_headroom_c": 90 - celsius,
            "memory_temperature_c": celsius + 8 + chance.choice((0, 0, 0, 1)),
            "memory_temperature_headroom_c": 87 - celsius,
            "power_w": power_w,
            "utilisation_percent": min(100, round(chance.gauss(97, 3))) if busy else 0,
            "sm_clock_mhz": clock,
            "memory_clock_mhz": 2619,
            "memory_used_bytes": self._used_bytes if busy else 4 << 20,
            "pcie_generation": 5 if busy else 1,
            "pcie_width": 16,
            **dict.fromkeys(ZEROS, 0),
        }
        if busy:
            numbers |= {"sm_clock_share": round(clock / 1980, 4), "pcie_share": 1.0}
        return DeviceReading(
            index=self._index,
            uuid=f"GPU-5ab4c2d0-0000-4000-8000-{self._index:012}",
            model="NVIDIA H100 80GB HBM3",
            pci_address=f"0000:{self._index + 16:x}:00.0",
            persistence=True,
            mig=False,
            processes=1 if busy else 0,
            links_active=18,
            fabric="completed",
            numbers={name: float(value) for name, value in numbers.items()},
        )


class SimulatedNode:
    """A node and its background runs."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._chance = random.Random(seed)  # noqa: S311 (noise, no secret)
        self._gpus = [SimulatedGpu(index, self._chance) for index in range(GPUS)]
        self._seq = 0
        self._free_share = 0.62

    def inventory(self, at: float) -> InventoryReport:
        """Its devices and checks."""
        checks = tuple(
            CheckInfo(
                name=name,
                summary=name,
                scope=Scope.NODE,
                needs=Needs.NOTHING,
                cadence_s=cadence_s,
                timeout_s=20.0,
                objective=None,
                params={"type": "object"},
            )
            for name, cadence_s in CADENCES.items()
        )
        devices = tuple(Device(index=index, uuid=f"GPU-{index}", model="NVIDIA H100") for index in range(GPUS))
        return InventoryReport(sent_at=at, node=self.name, inventory=Inventory(devices=devices), checks=checks)

    def runs(self, begin: float, end: float) -> Iterator[Run]:
        """The runs that are due in that time, in order."""
        due = sorted(
            (begin + (number + spread(self.name, check)) * cadence_s, check)
            for check, cadence_s in CADENCES.items()
            for number in range(int((end - begin) / cadence_s))
        )
        for at, check in due:
            late_s = self._chance.expovariate(50.0)
            yield self._run(check, round(at + late_s, 3))

    def _run(self, check: str, at: float) -> Run:
        self._seq += 1
        metrics, facts = getattr(self, f"_{check}")(at)
        return Run(
            id=f"{self._chance.getrandbits(128):032x}",
            node=self.name,
            check=check,
            verdict=Verdict.PASS,
            metrics=metrics,
            facts=facts,
            started_at=at,
            duration_s=self._chance.lognormvariate(-3.5, 0.2),
            seq=self._seq,
            cause="schedule",
        )

    def _nvml(self, at: float) -> tuple[Any, Any]:
        job, within_s = divmod(at, JOB_S + PAUSE_S)
        readings = tuple(gpu.read(busy=within_s < JOB_S, job=int(job)) for gpu in self._gpus)
        measured = NodeReading(devices=readings, software={"driver": "570.86.15", "cuda": "12.8"}).measurement()
        return measured.metrics, measured.facts

    def _kernel_log(self, _at: float) -> tuple[Any, Any]:
        metrics = {"machine_checks_corrected_per_day": 0.0, "pcie_corrected_per_h": 0.0}
        return metrics, {"told": [], "unavailable": None, "forgetful": None}

    def _fabric(self, _at: float) -> tuple[Any, Any]:
        ports = [
            {
                "device": f"mlx5_{number}",
                "number": 1,
                "state": "ACTIVE",
                "phys_state": "LinkUp",
                "rate_gbitps": 400.0,
                "link_layer": "InfiniBand",
                "interface": f"ib{number}",
                "remembered": True,
                "best_rate_gbitps": 400.0,
                "counted": {},
            }
            for number in range(GPUS)
        ]
        return {"active_ports": 8.0, **dict.fromkeys(FABRIC_ZEROS, 0.0)}, {"gone": {}, "excluded": [], "ports": ports}

    def _host(self, _at: float) -> tuple[Any, Any]:
        chance = self._chance
        self._free_share += chance.gauss(0, 1e-6)
        available = round(HOST_BYTES * chance.gauss(0.78, 0.0005)) // 4096 * 4096
        offset_s = chance.gauss(0, 2e-6)
        metrics = {
            "disk_available_share": round(self._free_share, 6),
            "inodes_free_share": 0.970155,
            "memory_available_share": round(available / HOST_BYTES, 6),
            "memory_available_bytes": float(available),
            "shm_bytes": float(HOST_BYTES // 2),
            "stuck_processes": 0.0,
            "zombies": float(chance.choice((0, 0, 0, 1, 2))),
            "clock_offset_s": round(offset_s, 9),
            "clock_max_error_s": round(0.001 + abs(offset_s) * 40, 6),
            "file_handles_used_share": round(chance.randrange(60_000, 62_000) / 9_223_372, 6),
        }
        spaces = [{"path": "/", "available_share": round(self._free_share, 6), "inodes_free_share": 0.970155}]
        systems = {"spaces": spaces, "unusable": [], "refused": [], "hanging": [], "read_only": []}
        processes = {"is_first": False, "stuck": [], "driver_zombies": []}
        facts = {"file_systems": systems, "processes": processes, "clock_synchronised": True, "unknown": {}}
        return metrics, facts
