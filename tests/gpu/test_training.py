"""The checks `training` and `training_ddp` on a real GPU, through the command line."""

import pytest

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("model", ["mlp", "resnet18", "resnet50", "transformer"])
def test_every_model_learns_in_every_precision(check_run, model, precision):
    """With default batches and steps, all in algorithms that give the same bits each time."""
    run = check_run("training", "--param", f"model={model}", "--param", f"precision={precision}")
    assert not [finding for finding in run["findings"] if finding["severity"] != "INFO"], run["findings"]
    assert max(run["metrics"]["loss_ratio"]) < 0.7
    assert min(run["metrics"]["throughput_samples_per_s"]) > 0


def test_the_same_training_ends_with_the_same_bits(check_run):
    """Run after run, which is what fingerprints are compared for."""
    first, second = (check_run("training", "--quick", "--param", "model=resnet18") for _ in range(2))
    assert first["facts"]["fingerprints"] == second["facts"]["fingerprints"]


def test_a_batch_that_does_not_fit_names_one_that_does(check_run):
    """A thousand sequences are too many for any GPU."""
    params = ("--param", "model=transformer", "--param", "batch_size=1024", "--param", "precision=fp32")
    (finding,) = (each for each in check_run("training", *params)["findings"] if each["severity"] != "INFO")
    assert finding["code"] == "training.does_not_fit"
    assert "set batch_size=" in finding["summary"]


@pytest.mark.parametrize("model", ["mlp", "resnet18"])
def test_all_gpus_of_the_node_train_together(check_run, model):
    """Over NCCL, one rank for each GPU, with a share of time for the collectives."""
    run = check_run("training_ddp", "--param", f"model={model}")
    assert run["facts"]["backend"] == "nccl"
    assert run["metrics"]["loss_ratio"] < 0.8
    assert len(set(run["facts"]["weights"])) == 1
