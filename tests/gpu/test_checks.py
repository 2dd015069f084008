"""The built-in checks and a suite on a real GPU, through the command line."""

import json

import pytest

pytestmark = pytest.mark.gpu


def test_nvml_reads_the_gpu(check_run):
    """A healthy GPU passes and tells its temperature and power."""
    run = check_run("nvml")
    assert run["verdict"] in ("PASS", "WARN"), run["findings"]
    assert all(10 < temperature < 100 for temperature in run["metrics"]["temperature_c"])
    assert run["facts"]["simulated"] is False


@pytest.mark.parametrize("check", ["gemm", "inference", "memory", "training", "training_ddp", "collective"])
def test_hidden_gpus_convict_nobody(check_run, check):
    """A process that is shown no GPU of a node that has some knows nothing about them."""
    run = check_run(check, "--quick", CUDA_VISIBLE_DEVICES="")
    assert run["verdict"] == "UNKNOWN"
    (finding,) = run["findings"]
    assert "CUDA_VISIBLE_DEVICES" in finding["summary"]


def test_a_gpu_that_is_shown_by_number_is_itself(check_run):
    """Whoever shows the first one gets it measured, and others, if there are any, are no failure."""
    run = check_run("gemm", "--quick", "--param", 'dtypes=["bf16"]', CUDA_VISIBLE_DEVICES="0")
    assert run["verdict"] in ("PASS", "WARN"), run["findings"]
    assert run["facts"]["devices"] == [0]
    assert run["facts"]["missing"] == []


def test_the_quick_suite_passes_and_reports(python, tmp_path):
    """As an operator accepts a node; what the host lacks may be warned of, the GPU must not be at fault."""
    options = ("--suite", "quick", "--alone", "--report-dir", tmp_path, "--report-name", "gpu")
    done = python("-m", "muster", "check", "run", *options)
    assert {path.name for path in tmp_path.glob("gpu*")} == {"gpu.json", "gpu.xml", "gpu.html"}, (
        done.stdout + done.stderr
    )
    report = json.loads((tmp_path / "gpu.json").read_text())
    on_gpus = ("nvml", "gemm", "memory", "training", "training_ddp", "collective")
    found = {step["check"]: step["verdict"] for step in report["steps"] if step["check"] in on_gpus}
    assert set(found) == set(on_gpus)
    assert found.pop("collective") in ("PASS", "SKIPPED")  # skipped with one GPU
    assert set(found.values()) <= {"PASS", "WARN"}, done.stdout
