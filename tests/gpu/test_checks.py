"""The built-in checks on a real GPU, through the command line."""

import pytest

pytestmark = pytest.mark.gpu


def test_nvml_reads_the_gpu(check_run):
    """A healthy GPU passes and tells its temperature and power."""
    run = check_run("nvml")
    assert run["verdict"] in ("PASS", "WARN"), run["findings"]
    assert all(10 < temperature < 100 for temperature in run["metrics"]["temperature_c"])
    assert run["facts"]["simulated"] is False


def test_gemm_is_right_and_fast(check_run):
    """Every proof product is right, and the speed is one that only a GPU has."""
    run = check_run("gemm", "--quick")
    assert not [finding for finding in run["findings"] if finding["code"] == "gemm.corrupt"]
    assert run["facts"]["backend"] == "cuda"
    assert min(run["metrics"]["tflops"]) > 5


def test_training_learns(check_run):
    """The loss falls on every device."""
    run = check_run("training", "--quick")
    assert run["verdict"] == "PASS", run["findings"]
    assert max(run["metrics"]["loss_ratio"]) < 0.7


def test_collective_uses_nccl(check_run):
    """Alone on a node the group is as large as the node has GPUs."""
    run = check_run("collective", "--param", "size_bytes=67108864")
    assert run["verdict"] == "PASS", run["findings"]
    assert run["facts"]["backend"] == "nccl"
    assert run["metrics"]["wrong_elements"] == 0


def test_more_gpus_than_there_are_is_a_failure(check_run):
    """The missing one is named."""
    run = check_run("gemm", "--quick", "--expect-gpus", "99")
    assert run["verdict"] == "FAIL"
    assert 98 in next(each for each in run["findings"] if each["code"] == "gemm.devices_missing")["evidence"]["missing"]
