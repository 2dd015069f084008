"""One object stands for all equal values, for as long as somebody has it."""

import gc

from muster.wire.messages import PluginInfo
from muster_coordinator.evidence.shared_values import SharedValues


def plugin(name: str) -> PluginInfo:
    return PluginInfo(name=name, distribution=None, version=None, status="loaded")


def test_equal_values_are_one_object() -> None:
    """Different ones stay different."""
    values = SharedValues()
    first = values.shared(plugin("nvml"))
    assert values.shared(plugin("nvml")) is first
    assert values.shared(plugin("host")) == plugin("host")


def test_a_value_that_nobody_has_is_forgotten() -> None:
    """A node that announces a new check in every message fills no memory."""
    values = SharedValues()
    for number in range(1000):
        values.shared(plugin(f"made-up-{number}"))
    gc.collect()
    assert len(values) == 0
