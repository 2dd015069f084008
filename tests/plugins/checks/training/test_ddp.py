"""The check `training_ddp`."""

import pytest
from tests.cases import cases

from muster import Measurement
from muster.model import Json
from muster.references import applicable, shipped
from muster_plugins.checks.training.ddp import judge


def reported(**differing):
    return {"task": "t", "kind": "H200", "fingerprint": "f", "step_time_s": 0.1, "samples_per_s": 320.0} | differing


FACTS: Json = {
    "missing": [],
    "backend": "nccl",
    "data": "synthetic",
    "model": "resnet50",
    "batch_size_per_gpu": 32,
    "steps": 150,
    "iterations": 100,
    "world_size": 3,
    "rank": 0,
    "device": 4,
    "ranks": [reported(), reported(), reported()],
    "weights": ["w", "w", "w"],
}
GOOD = {"loss_last": 0.1, "loss_ratio": 0.05, "scaling_efficiency": 0.96, "compute_lag": 0.04, "step_time_drift": 0.1}
MLP: Json = {"model": "mlp"}


@cases(
    ("metrics", "facts", "expected"),
    [
        ({}, {}, []),
        ({"loss_last": None, "loss_ratio": None}, {}, [("loss_not_finite", "ERROR", None)]),
        ({"loss_ratio": 0.91}, {}, [("loss_not_falling", "ERROR", None)]),
        ({"loss_ratio": 0.81}, MLP, [("loss_not_falling", "ERROR", None)]),
        ({"loss_ratio": 0.81}, MLP | {"rank": 1}, []),
        ({"scaling_efficiency": 0.94}, {}, [("scales_badly", "WARNING", None)]),
        ({"scaling_efficiency": 0.85}, {}, [("scales_badly", "ERROR", None)]),
        ({"scaling_efficiency": 0.94}, {"world_size": 16}, []),
        ({"scaling_efficiency": 0.84}, {"world_size": 32}, [("scales_badly", "WARNING", None)]),
        ({"scaling_efficiency": 0.81}, {"world_size": 64}, []),
        ({"scaling_efficiency": 0.2}, MLP, []),
        ({"compute_lag": 0.06}, {"rank": 2}, [("slow_rank", "WARNING", 4)]),
        ({"compute_lag": 0.11}, {"rank": 2}, [("slow_rank", "ERROR", 4)]),
        ({"compute_lag": 9.0}, {"backend": "gloo"}, []),
        ({"step_time_drift": 0.21}, {}, [("drift", "ERROR", 4)]),
        ({"throughput_spread": 0.06}, {}, [("uneven", "WARNING", None)]),
        ({"throughput_spread": 0.06}, {"rank": 1}, []),
        ({"throughput_spread": 0.11}, {}, [("uneven", "ERROR", None)]),
        ({"utilisation_percent": 89.0}, {"rank": 1}, [("underused", "WARNING", 4)]),
        ({"utilisation_percent": 89.0}, {"batch_size_per_gpu": 8}, []),
        ({}, {"weights": ["x", "w", "w"]}, [("weights_differ", "ERROR", 4)]),
        ({}, {"weights": ["w", "x", "w"]}, []),
        ({}, {"ranks": [reported(fingerprint="g"), reported(), reported()]}, [("results_differ", "ERROR", 4)]),
        ({}, {"ranks": [reported(fingerprint="g"), reported()], "rank": 1}, [("results_differ", "ERROR", 4)]),
        ({}, {"ranks": [reported(fingerprint="g", kind="H100"), reported(), reported()]}, []),
        ({}, {"ranks": [reported(task="u"), reported(), reported()]}, [("not_together", "UNKNOWN", None)]),
        ({}, {"ranks": [reported(fingerprint=None), reported(), reported()]}, [("not_together", "UNKNOWN", None)]),
    ],
)
def test_judgement(metrics, facts, expected):
    """The whole group's values are judged at rank 0, a rank's at that rank; wrong bits are a finding of the rank."""
    measured = FACTS | facts
    rows = applicable(shipped(), "training_ddp", measured)
    findings = judge(Measurement(metrics=GOOD | metrics, facts=measured), rows)
    named = [(each.code.removeprefix("training_ddp."), each.severity, each.device) for each in findings]
    assert named == expected


def test_devices_that_cannot_be_asked_end_it_before_anybody_waits(torch_child, codes):
    """A node that should have a device does not join on the CPU."""
    (answer,) = torch_child.ask("training_ddp", {"expected_gpus": 1})
    assert codes(answer) == [("training_ddp.not_asked", "UNKNOWN", None)]


def test_ranks_train_one_network(torch_child, codes):
    """Two nodes meet over gloo: the loss falls, both end with the same weights, samples of both count once."""
    answers = torch_child.ask("training_ddp", {"node": "a"}, {"node": "b"}, params={"batch_size": 64})
    for rank, answer in enumerate(answers):
        assert codes(answer) == []
        common = {"backend": "gloo", "nodes": 2, "world_size": 2, "rank": rank, "global_batch_size": 128}
        assert answer["facts"] | common == answer["facts"]
        assert len(set(answer["facts"]["weights"])) == 1
        metrics = answer["metrics"]
        assert metrics["loss_ratio"] < 0.8
        assert metrics["total_samples"] == 2 * 64 * 50
        assert metrics["throughput_samples_per_s"] == pytest.approx(metrics["total_samples"] / metrics["total_time_s"])
        assert 0 <= metrics["collective_share"] < 1
        assert metrics["scaling_efficiency"] > 0
    assert answers[0]["metrics"]["loss_last"] == answers[1]["metrics"]["loss_last"]


def test_the_group_trains_several_times(torch_child, codes):
    """Samples of all trainings count, over the time of all."""
    params = {"batch_size": 64, "iterations": 10, "repeats": 3}
    answers = torch_child.ask("training_ddp", {"node": "a"}, {"node": "b"}, params=params)
    for answer in answers:
        assert codes(answer) == []
        metrics = answer["metrics"]
        assert metrics["total_samples"] == 3 * 2 * 64 * 10
        assert metrics["throughput_samples_per_s"] == pytest.approx(metrics["total_samples"] / metrics["total_time_s"])


def test_a_rank_that_computes_wrongly_reports_itself(torch_child, codes, simulated_node):
    """Its gradients would reach all the others in the mean, where nobody could tell whose they were."""
    faulty = simulated_node(faults=[{"kind": "corrupt", "device": 0}])
    answers = torch_child.ask("training_ddp", simulated_node(), faulty, simulated_node())
    assert [codes(answer) for answer in answers] == [[], [("training_ddp.results_differ", "ERROR", 0)], []]
    assert answers[1]["findings"][0]["evidence"] == {"ranks": [1]}


def test_a_rank_whose_weights_stray_reports_itself(torch_child, codes):
    """The loss falls on all of them, but they no longer train the same network."""
    answers = torch_child.ask("training_ddp", {}, {}, {}, strays=2)
    assert [codes(answer) for answer in answers] == [[], [], [("training_ddp.weights_differ", "ERROR", None)]]


def test_ranks_with_different_tasks_do_not_train_together(torch_child, codes, tmp_path):
    """Every rank says so and which were odd; a different file is no broken device."""
    pixels, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    nodes = []
    for node, period in (("a", b"\0\1"), ("b", b"\1\0")):
        directory = tmp_path / node / "fashion_mnist"
        directory.mkdir(parents=True)
        sizes = b"".join(size.to_bytes(4, "big") for size in (4, 28, 28))
        (directory / pixels.name).write_bytes(b"\0\0\x08\x03" + sizes + period * 2 * 784)
        (directory / labels.name).write_bytes(b"\0\0\x08\x01" + (4).to_bytes(4, "big") + bytes(4))
        nodes.append({"plugins": {"training": {"data_dir": str(tmp_path / node)}}})
    params = {"data": "fashion_mnist", "batch_size": 2, "iterations": 4, "warmup": 0}
    answers = torch_child.ask("training_ddp", *nodes, params=params)
    for answer in answers:
        assert codes(answer) == [("training_ddp.not_together", "UNKNOWN", None)]
        assert answer["findings"][0]["evidence"] == {"ranks": [0, 1]}


def test_data_that_is_not_there_ends_it_before_anybody_waits(torch_child, codes):
    """The rank does not come to the rendezvous, and its finding says why."""
    (answer,) = torch_child.ask("training_ddp", params={"data": "cifar10"})
    assert codes(answer) == [("training_ddp.data_unset", "UNKNOWN", None)]


def test_alone_on_a_node_it_trains(torch_child, codes):
    """A group of one has nobody to wait for, and nobody to be compared with."""
    (answer,) = torch_child.ask("training_ddp", params={"batch_size": 8, "precision": "fp16"})
    assert codes(answer) == []
    assert answer["metrics"]["compute_lag"] == 0
