"""The built-in checks on a real GPU, through the command line."""

import pytest

pytestmark = pytest.mark.gpu


def test_nvml_reads_the_gpu(check_run):
    """A healthy GPU passes and tells its temperature and power."""
    run = check_run("nvml")
    assert run["verdict"] in ("PASS", "WARN"), run["findings"]
    assert all(10 < temperature < 100 for temperature in run["metrics"]["temperature_c"])
    assert run["facts"]["simulated"] is False


def test_training_learns(check_run):
    """The loss falls on every device."""
    run = check_run("training", "--quick")
    assert run["verdict"] == "PASS", run["findings"]
    assert max(run["metrics"]["loss_ratio"]) < 0.7
