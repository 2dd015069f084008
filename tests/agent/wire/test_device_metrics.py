"""The figures of devices in the agent's metrics."""

from typing import Any, get_args

from tests.cases import cases

from muster.agent_settings import DeviceFigures
from muster.model import Run, Verdict
from muster_agent.wire.device_metrics import FIGURES
from muster_agent.wire.metrics import AgentMetrics
from muster_plugins.shared.devices.reading import NUMBERS, DeviceReading, NodeReading

H100 = {"gpu": "0", "UUID": "GPU-a", "modelName": "NVIDIA H100", "Hostname": "n1"}


def run(check: str = "nvml", **values: Any) -> Run:
    """A run that has read two devices, of which the second reports less."""
    numbers = {"temperature_c": 41.0, "power_w": 70.5, "memory_used_bytes": 3.0 * (1 << 20), "pcie_replays": 7.0}
    reading = NodeReading(
        devices=(
            DeviceReading(index=0, uuid="GPU-a", model="NVIDIA H100", numbers=numbers),
            DeviceReading(index=3, uuid="GPU-b", model="NVIDIA H100", numbers={"temperature_c": 43.0}),
        )
    ).measurement()
    said = {"verdict": Verdict.PASS, "metrics": reading.metrics, "facts": reading.facts, **values}
    return Run(id="r", node="n1", check=check, started_at=1.0, duration_s=0.1, **said)


def exported(groups: tuple[DeviceFigures, ...], *runs: Run) -> dict[str, dict[str, float]]:
    """By metric, the values of the devices by their number."""
    metrics = AgentMetrics("n1", groups)
    for each in runs:
        metrics.run_ended(each)
    found: dict[str, dict[str, float]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            if sample.name.startswith("DCGM"):
                found.setdefault(sample.name, {})[sample.labels["gpu"]] = sample.value
    return found


def test_what_was_measured_has_the_names_of_the_dcgm_exporter():
    """Each device that reports a value has a series of it, with its index, UUID and model, and in the usual unit."""
    assert exported(("all",), run()) == {
        "DCGM_FI_DEV_GPU_TEMP": {"0": 41.0, "3": 43.0},
        "DCGM_FI_DEV_POWER_USAGE": {"0": 70.5},
        "DCGM_FI_DEV_FB_USED": {"0": 3.0},
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": {"0": 7.0},
    }
    power: tuple[DeviceFigures, ...] = ("power",)
    metrics = AgentMetrics("n1", power)
    metrics.run_ended(run())
    text = metrics.expose().decode()
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(H100.items()))
    assert f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 70.5\n" in text


@cases(
    ("groups", "names"),
    [
        ((), set()),
        (("temperature",), {"DCGM_FI_DEV_GPU_TEMP"}),
        (("temperature", "pcie"), {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"}),
    ],
)
def test_only_the_groups_that_were_chosen_are_exported(groups, names):
    """None by default."""
    assert set(exported(groups, run())) == names


@cases(
    ("name", "last"),
    [
        ("the driver hangs", run(verdict=Verdict.UNKNOWN, metrics={}, facts={})),
        ("a run says nonsense", run(facts={"devices": "none"})),
        ("it says something else", run(metrics={"temperature_c": 41.0})),
    ],
)
def test_nothing_is_exported_that_was_not_measured(name, last):
    """The values of the run before are not shown as those of now."""
    assert exported(("all",), run(), last) == {}, name


def test_other_checks_change_nothing():
    """Also if they measure something of the same name."""
    other = run(check="gemm", metrics={"temperature_c": [90.0, 90.0]})
    assert exported(("temperature",), run(), other) == {"DCGM_FI_DEV_GPU_TEMP": {"0": 41.0, "3": 43.0}}


def test_every_group_can_be_chosen_and_every_figure_is_measured():
    """The names in the settings and of the measurements are those of the figures."""
    assert ("all", *FIGURES) == get_args(DeviceFigures)
    assert {figure.measured for figures in FIGURES.values() for figure in figures} <= set(NUMBERS)
