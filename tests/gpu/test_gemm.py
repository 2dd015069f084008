"""The check `gemm` on a real GPU, through the command line."""

import pytest

pytestmark = pytest.mark.gpu

CORRUPTION = {"gemm.corrupt", "gemm.deviates", "gemm.disagreement", "gemm.device_failed"}


def codes(run):
    return {finding["code"] for finding in run["findings"]}


def test_every_format_is_right_and_fast(check_run):
    """Nothing is wrong with any product, and the speed is one that only a GPU has."""
    run = check_run("gemm", "--quick", "--param", 'dtypes=["fp32","tf32","bf16","fp16","fp8"]')
    assert not codes(run) & CORRUPTION, run["findings"]
    assert run["facts"]["backend"] == "cuda"
    assert {"fp32", "bf16", "fp16"} <= set(run["facts"]["dtypes"])
    for dtype in run["facts"]["dtypes"]:
        assert min(run["metrics"][f"tflops_{dtype}"]) > 5


def test_tensor_cores_are_used(check_run):
    """Narrow formats are several times as fast as fp32, and fp32 is not TF32 in disguise."""
    metrics = check_run("gemm", "--param", 'dtypes=["fp32","tf32","bf16"]')["metrics"]
    assert metrics["tflops_tf32"][0] > 2 * metrics["tflops_fp32"][0]
    assert metrics["tflops_bf16"][0] > 1.5 * metrics["tflops_tf32"][0]


def test_the_fingerprint_is_the_same_in_every_run(check_run):
    """As cuBLAS promises for the same model and version; so a difference convicts a device. Each takes 15 s at most."""
    runs = [check_run("gemm", "--quick") for _ in range(2)]
    assert max(run["duration_s"] for run in runs) < 15
    first, second = (run["facts"] for run in runs)
    assert first["fingerprints"] == second["fingerprints"]
    assert None not in [bits for each in first["fingerprints"].values() for bits in each]
    assert first["software"] == second["software"]
    assert first["software"]["cuda"]


def test_a_size_that_does_not_fit_says_what_does(check_run):
    """It is no fault of the device."""
    run = check_run("gemm", "--quick", "--param", "size=262144", "--param", 'dtypes=["fp32"]')
    assert run["verdict"] == "UNKNOWN"
    assert codes(run) >= {"gemm.out_of_memory"}


def test_more_gpus_than_there_are_is_a_failure(check_run):
    """The missing one is named."""
    run = check_run("gemm", "--quick", "--expect-gpus", "99")
    assert run["verdict"] == "FAIL"
    assert 98 in next(each for each in run["findings"] if each["code"] == "gemm.devices_missing")["evidence"]["missing"]
