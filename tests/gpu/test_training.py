"""The checks `training` and `training_ddp` on a real GPU, through the command line."""

import pytest

pytestmark = pytest.mark.gpu

TRAININGS = [
    *(("mlp", precision) for precision in ("fp32", "bf16", "fp16")),
    ("resnet18", "fp32"),
    ("resnet50", "bf16"),
    *(("transformer", precision) for precision in ("fp32", "bf16", "fp16")),
]


@pytest.mark.parametrize(("model", "precision"), TRAININGS)
def test_every_model_learns_in_every_precision(check_run, model, precision):
    """With default batches, all in algorithms that give the same bits each time; resnet50 learns most slowly."""
    run = check_run("training", "--quick", "--param", f"model={model}", "--param", f"precision={precision}")
    assert not [finding for finding in run["findings"] if finding["severity"] != "INFO"], run["findings"]
    assert max(run["metrics"]["loss_ratio"]) < 0.9
    assert min(run["metrics"]["throughput_samples_per_s"]) > 0


@pytest.mark.parametrize("model", ["resnet18", "transformer"])
def test_the_same_training_ends_with_the_same_bits(check_run, model):
    """Run after run, which is what fingerprints are compared for."""
    params = ("--param", f"model={model}", "--param", "precision=bf16", "--param", "iterations=20")
    first, second = (check_run("training", "--quick", *params) for _ in range(2))
    assert first["facts"]["fingerprints"] == second["facts"]["fingerprints"]


def test_repeated_trainings_agree_and_keep_the_gpu_busy(check_run):
    """As an acceptance has it: three trainings of the transformer."""
    params = ("--param", "model=transformer", "--param", "precision=bf16", "--param", "repeats=3")
    run = check_run("training", *params)
    assert not [finding for finding in run["findings"] if finding["severity"] != "INFO"], run["findings"]
    assert max(run["metrics"]["changed_results"]) == 0
    assert max(run["metrics"]["throughput_spread"]) <= 0.05
    assert min(run["metrics"]["utilisation_percent"]) > 90


def test_a_batch_that_does_not_fit_names_one_that_does(check_run):
    """640 sequences take 200 GB, more than any GPU has."""
    params = ("--param", "model=transformer", "--param", "batch_size=640", "--param", "precision=fp32")
    (finding,) = (each for each in check_run("training", *params)["findings"] if each["severity"] != "INFO")
    assert finding["code"] == "training.does_not_fit"
    assert "set batch_size=" in finding["summary"]


@pytest.mark.parametrize("model", ["mlp", "resnet18"])
def test_all_gpus_of_the_node_train_together(check_run, model):
    """Over NCCL, one rank for each GPU, with a share of time for the collectives."""
    run = check_run("training_ddp", "--quick", "--param", f"model={model}")
    assert run["facts"]["backend"] == "nccl"
    assert run["metrics"]["loss_ratio"] < 0.8
    assert len(set(run["facts"]["weights"])) == 1
