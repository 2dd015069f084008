"""Metrics with their units."""

import tomllib
from importlib import resources

from tests.cases import cases

from muster.units import metric_text, unit_of, with_unit

UNITS = {
    "busbw_gbps": "GB/s",
    "tflops_bf16": "TFLOP/s",
    "throughput_samples_per_s": "samples/s",
    "nvlink_crc_errors_per_s": "/s",
    "latency_us": "µs",
    "median_step_time_s": "s",
    "temperature_c": "°C",
    "power_w": "W",
    "shm_bytes": "B",
    "efficiency": "",
    "loss_ratio": "",
    "free_share": "",
    "zombies": "",
}


@cases(("metric", "unit"), UNITS.items())
def test_the_name_of_a_metric_tells_its_unit(metric, unit):
    """The longest suffix that fits counts; a share or a count has none."""
    assert unit_of(metric) == unit


def test_the_shipped_references_agree():
    """Where both a reference and the name of its metric tell a unit in the same words, it is the same."""
    rows = tomllib.loads(resources.files("muster").joinpath("references.toml").read_text())["reference"]
    told = {(row["metric"], row["unit"]) for row in rows if row.get("unit") in ("GB/s", "TFLOP/s", "°C", "µs")}
    assert len(told) > 5
    assert {metric: unit_of(metric) for metric, _ in told} == dict(told)


def test_values_are_shown_with_it():
    """A number, one for each device, or none."""
    assert metric_text(12.34567891, "busbw_gbps") == "12.3457 GB/s"
    assert metric_text([1.0, None, 2.5], "tflops_bf16") == "1, -, 2.5 TFLOP/s"
    assert metric_text(None, "busbw_gbps") == "-"
    assert metric_text(0.5, "efficiency") == metric_text(0.5) == "0.5"
    assert with_unit("3", None) == "3"
