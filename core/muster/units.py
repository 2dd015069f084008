"""The unit of a metric, by the end of its name: `busbw_gbps` is in GB/s."""

from muster.model import Metric

_SUFFIXES = (
    ("_samples_per_s", "samples/s"),
    ("_per_s", "/s"),
    ("_per_min", "/min"),
    ("_per_h", "/h"),
    ("_per_hour", "/h"),
    ("_per_day", "/day"),
    ("_gbps", "GB/s"),
    ("_gbitps", "Gbit/s"),
    ("_iops", "IOPS"),
    ("_bytes", "B"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_c", "°C"),
    ("_w", "W"),
    ("_mhz", "MHz"),
    ("_percent", "%"),
)
"""The first suffix that fits is used."""


def unit_of(metric: str | None) -> str:
    """The unit of a metric; empty for one without, such as a share or a count."""
    name = metric or ""
    if name.startswith("tflops"):
        return "TFLOP/s"
    return next((unit for suffix, unit in _SUFFIXES if name.endswith(suffix)), "")


def with_unit(text: str, metric: str | None) -> str:
    """A value of the metric, already as text, with its unit."""
    return f"{text} {unit_of(metric)}".rstrip()


def metric_text(value: Metric, metric: str | None = None) -> str:
    """A value, or one for each device, with the unit of the metric; `-` where a number is missing."""
    numbers = value if isinstance(value, list) else [value]
    text = ", ".join("-" if number is None else f"{number:.6g}" for number in numbers)
    return text if text == "-" else with_unit(text, metric)
