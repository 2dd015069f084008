"""The check `fabric` as a whole: what is expected of a node, what is left out, what is reported."""

from pathlib import Path

import pytest
from tests.cases import cases
from tests.plugins.checks.fabric.node import GPU, take_down

from muster import Config, Measurement, Skip
from muster.config import Settings
from muster.errors import SettingsError
from muster.references import applicable, shipped
from muster_plugins.checks.fabric import check as fabric
from muster_plugins.checks.fabric.check import FabricSettings, judge
from muster_plugins.checks.fabric.reading import FabricReading


def test_nothing_there_and_nothing_expected_is_skipped(node):
    """A node without RDMA is neither a fault nor a pass."""
    with pytest.raises(Skip, match="no InfiniBand or RoCE here"):
        node().measure()


def test_a_simulated_node_has_no_fabric(tree, node):
    """The network of the host that runs a simulated node says nothing about the fleet."""
    tree.plug("mlx5_0")
    with pytest.raises(Skip, match="simulated"):
        node().measure(GPU.model_copy(update={"simulated": True}))


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"ports": 8}, ["8 more ports not there"]),
        ({"expect": "ib"}, ["1 more InfiniBand not there"]),
        ({"devices": {"mlx5_0": 400, "mlx5_1": 400}}, ["mlx5_0 not there", "mlx5_1 not there"]),
    ],
)
def test_expected_and_absent_is_a_fault(node, table, named):
    """The finding names the ports if their names are known."""
    finding = node(**table).findings()["fabric.ports_missing"]
    assert (finding.severity, finding.evidence["listed"]) == ("ERROR", named)


@pytest.mark.parametrize(
    ("layer", "table", "key"),
    [("InfiniBand", {}, "ib"), ("Ethernet", {}, "roce"), ("Ethernet", {"expect": "roce"}, "roce")],
)
def test_healthy_ports_pass(tree, node, layer, table, key):
    """With every counter at rest there is nothing to find, and references know the fabric."""
    tree.plug("mlx5_0", layer=layer)
    tree.plug("mlx5_1", layer=layer)
    healthy = node(**table)
    assert set(healthy.findings()) == {"fabric.not_yet_counted"}
    measurement = healthy.measure()
    assert judge(measurement, applicable(shipped(), "fabric", measurement.facts)) == []
    assert measurement.facts["fabric"] == key
    assert measurement.metrics["active_ports"] == 2.0
    assert measurement.metrics["symbol_error_per_hour"] == 0.0


def test_every_judged_metric_is_measured_and_has_a_reference(tree, node):
    """Every metric that the check lists as judged is measured and has a reference."""
    tree.plug("mlx5_0")
    watched = node()
    watched.measure()
    measurement = watched.measure()
    (check,) = fabric.muster_checks(Config(Settings()))
    assert set(check.judged) <= set(measurement.metrics)
    assert set(check.judged) == set(applicable(shipped(), "fabric", measurement.facts))


def test_excluded_devices_are_not_read_at_all(tree, node, monkeypatch):
    """Reading the counters of some devices disturbs them; the finding says that they were not read."""
    tree.plug("mlx5_0")
    take_down(tree.plug("mlx5_2"))
    tree.plug("mlx5_bond_0")
    opened = []
    whole = Path.open

    def note(self, *arguments, **options):
        opened.append(str(self))
        return whole(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", note)
    finding = node(exclude=["mlx5_2", "mlx5_bond_*"]).findings()["fabric.excluded"]
    assert (finding.severity, finding.evidence["listed"]) == ("SKIPPED", ["mlx5_2", "mlx5_bond_0"])
    assert opened and not any("mlx5_2" in path or "bond" in path for path in opened)


def test_with_every_device_excluded_there_is_nothing_to_measure(tree, node):
    """The reason differs from that of a node without RDMA."""
    tree.plug("mlx5_0")
    with pytest.raises(Skip, match="is excluded"):
        node(exclude=["*"]).measure()


@cases(
    ("table", "message"),
    [
        ({"expect": "myrinet"}, "expect"),
        ({"ports": -1}, "ports"),
        ({"rate_gbitps": 0}, "rate_gbitps"),
        ({"devices": {"mlx5_0": -1}}, "devices"),
        ({"port": 8}, "port"),
    ],
)
def test_wrong_settings_are_refused(table, message):
    """The error names the wrong key."""
    config = Config(Settings.model_validate({"plugins": {"fabric": table}}))
    with pytest.raises(SettingsError, match=message):
        fabric.muster_configure(config)


def test_facts_give_back_the_reading_for_judging_again(tree, node):
    """The coordinator can judge again from the reported facts."""
    take_down(tree.plug("mlx5_0"))
    measurement = node(ports=1).measure()
    again = Measurement.model_validate_json(measurement.model_dump_json())
    references = applicable(shipped(), "fabric", again.facts)
    assert judge(again, references) == judge(measurement, references)
    assert FabricReading.model_validate(again.facts).ports[0].state == "DOWN"


def test_settings_default_to_the_real_sysfs():
    """Without settings the node itself is read."""
    assert FabricSettings().sysfs_root == Path("/sys")
