"""Simulated devices and the faults that can be put into them. What faults do to torch stands with the checks."""

import pytest
from tests.cases import cases

from muster import Config
from muster.config import Settings
from muster.errors import SettingsError
from muster.plugins import collect_checks, load


def test_nothing_is_simulated_unless_the_settings_say_so(node_without_nvml):
    """Neither a device nor a check nor a probe."""
    assert node_without_nvml.ask("inventory")["devices"] == []
    assert "simulated" not in collect_checks(load(Config(Settings())))
    assert "simulated" not in node_without_nvml.ask("probe", own=[])


def test_simulated_devices_say_that_they_are(torch_child, simulated_node):
    """In every field that somebody might read."""
    devices = torch_child.ask("inventory", simulated_node(devices=2))["devices"]
    assert [device["index"] for device in devices] == [0, 1]
    assert all(device["simulated"] and device["uuid"].startswith("SIM-") for device in devices)
    assert all(device["model"].endswith("(simulated)") for device in devices)


def test_simulated_devices_go_before_real_ones(stubbed_node, simulated_node):
    """A node that simulates shows nothing else, and leaves its real devices alone."""
    settings = simulated_node(devices=1)["plugins"]
    assert [device["uuid"] for device in stubbed_node.ask("inventory", plugins=settings)["devices"]] == ["SIM-sim-0"]
    assert stubbed_node.ask("nvml", plugins=settings) == {"skipped": "the devices of this node are simulated"}


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"kind": "ecc", "device": 1}, [("simulated.ecc_uncorrected", "ERROR", 1)]),
        ({"kind": "hot", "device": 0}, [("simulated.too_hot", "ERROR", 0)]),
        ({"kind": "missing", "device": 1}, [("simulated.devices_missing", "ERROR", None)]),
        ({"kind": "slow_link"}, []),
        ({"kind": "corrupt", "device": 1}, []),
    ],
)
def test_faults_show_when_devices_are_read(torch_child, codes, simulated_node, fault, expected):
    """They are judged as nvml judges, under codes of their own."""
    answer = torch_child.ask("simulated", simulated_node(devices=2, faults=[fault]))
    assert codes(answer) == expected
    assert answer["facts"]["simulated"] is True


def test_a_missing_device_is_named_by_its_address(torch_child, simulated_node):
    """The simulated bus still shows it."""
    answer = torch_child.ask("simulated", simulated_node(devices=2, faults=[{"kind": "missing", "device": 1}]))
    assert answer["findings"][0]["evidence"]["missing"] == ["0000:11:00.0"]


def test_a_file_makes_the_node_busy(torch_child, simulated_node, tmp_path):
    """So that a test can let work arrive."""
    node = simulated_node(busy_file=str(tmp_path / "busy"))
    assert torch_child.ask("probe", node, own=[])["simulated"] == "IDLE"
    (tmp_path / "busy").touch()
    assert torch_child.ask("probe", node, own=[])["simulated"] == "BUSY"


@cases(
    "table",
    [
        {"model": "NVIDIA H100"},
        {"faults": [{"kind": "gremlin"}]},
        {"faults": [{"kind": "ecc", "devise": 1}]},
        {"faults": [{"kind": "slow_link", "factor": 0.5}]},
        {"divices": 2},
    ],
)
def test_wrong_settings_are_refused_at_start(table):
    """A model must not pass for a real one, and a fault with a typing error must not vanish."""
    with pytest.raises(SettingsError, match=r"plugins\.simulated"):
        load(Config(Settings.model_validate({"plugins": {"simulated": table}})))
