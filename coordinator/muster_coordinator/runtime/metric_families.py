"""Metric families of Prometheus with one sample each, or with samples told apart by labels."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

LEADS = "muster_leads", "1 if this coordinator leads the fleet, 0 if it stands by"


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    """A value that goes up and down."""
    return GaugeMetricFamily(name, text, value=value)


def counter(name: str, text: str, value: float) -> CounterMetricFamily:
    """A number of events since the start. It is scraped as `name`_total."""
    return CounterMetricFamily(name, text, value=value)


def info(name: str, text: str, **labels: str) -> GaugeMetricFamily:
    """1, with what is said in labels."""
    return labelled(name, text, tuple(labels), [(tuple(labels.values()), 1)])


def labelled(
    name: str, text: str, labels: tuple[str, ...], samples: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    """Values that go up and down, each with its values of the labels."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family
