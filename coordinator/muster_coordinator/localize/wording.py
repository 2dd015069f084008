"""How measured amounts are put into words."""


def quantity(metric: str | None) -> str:
    """What a metric measures."""
    return (metric or "objective").removesuffix("_gbps")


def amount(value: float | None, metric: str | None) -> str:
    """A value of the metric with its unit."""
    unit = " GB/s" if metric is not None and metric.endswith("_gbps") else ""
    return "?" if value is None else f"{value:.3g}{unit}"
