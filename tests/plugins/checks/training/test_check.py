"""The check `training`."""

import gzip

import pytest
from tests.cases import cases

from muster import Measurement
from muster.check import valid_params
from muster.config import Config, Settings
from muster.errors import Refused
from muster.model import Json
from muster.references import applicable, shipped
from muster_plugins.checks.training.check import judge, muster_checks

FACTS: Json = {
    "devices": [0, 1, 2],
    "missing": [],
    "data": "synthetic",
    "model": "mlp",
    "backend": "cuda",
    "steps": 150,
    "iterations": 100,
    "repeats": 3,
    "models": ["H200", "H200", "H200"],
    "fingerprints": {"task": ["a", "a", "a"]},
}
GOOD = {"loss_last": [0.9, 0.9, 0.9], "loss_ratio": [0.4, 0.7, 0.4], "step_time_drift": [0.0, 0.2, -0.5]}

RESNET: Json = {"model": "resnet50", "batch_size_per_gpu": 32}


@cases(
    ("metrics", "facts", "expected"),
    [
        ({}, {}, []),
        ({"loss_ratio": [0.4, 0.71, 0.4]}, {}, [("training.loss_not_falling", "ERROR", 1)]),
        ({"loss_ratio": [0.4, 0.71, 0.4]}, {"steps": 10}, []),
        ({"loss_ratio": [0.4, 0.71, 0.4]}, {"model": "resnet18", "batch_size_per_gpu": 32}, []),
        (
            {"loss_ratio": [0.4, 0.91, 0.4]},
            {"model": "resnet18", "batch_size_per_gpu": 32},
            [("training.loss_not_falling", "ERROR", 1)],
        ),
        (
            {"loss_last": [None, 0.9, 0.9], "loss_ratio": [None, 0.4, 0.4]},
            {},
            [("training.loss_not_finite", "ERROR", 0)],
        ),
        ({"step_time_drift": [0.0, 0.0, 0.21]}, {}, [("training.drift", "ERROR", 2)]),
        ({"step_time_drift": [0.0, 0.0, 0.21]}, {"backend": "cpu"}, []),
        ({}, {"fingerprints": {"task": ["a", "b", "a"]}}, [("training.results_differ", "ERROR", 1)]),
        ({}, {"fingerprints": {"task": ["a", "b", "c"]}}, [("training.disagreement", "UNKNOWN", None)]),
        ({}, {"fingerprints": {"task": ["a", "b", "b"]}, "models": ["H100", "H200", "H200"]}, []),
        (
            {"loss_last": [0.9, None, 0.9], "loss_ratio": [0.4, None, 0.4]},
            {
                "fingerprints": {"task": ["a", None, "a"]},
                "problems": [{"code": "does_not_fit", "text": "batches of 8 do", "device": 1}],
            },
            [("training.does_not_fit", "UNKNOWN", 1)],
        ),
        ({}, {"missing": [3]}, [("training.devices_missing", "ERROR", None)]),
        ({"throughput_spread": [0.05, 0.06, 0.11]}, {}, []),
        (
            {"throughput_spread": [0.05, 0.06, 0.11]},
            RESNET,
            [("training.uneven", "WARNING", 1), ("training.uneven", "ERROR", 2)],
        ),
        ({"utilisation_percent": [89.0, None, 91.0]}, RESNET, []),
        (
            {"utilisation_percent": [89.0, None, 91.0]},
            RESNET | {"model": "transformer"},
            [("training.underused", "WARNING", 0)],
        ),
        ({"changed_results": [0, 1, 0]}, {}, [("training.results_change", "ERROR", 1)]),
    ],
)
def test_judgement(metrics, facts, expected):
    """Losses, drift and bits unlike those of its like name the device; short runs and other devices judge nobody."""
    measured = FACTS | facts
    findings = judge(Measurement(metrics=GOOD | metrics, facts=measured), applicable(shipped(), "training", measured))
    assert [(each.code, each.severity, each.device) for each in findings] == expected


@cases(
    ("params", "words"),
    [
        ({"batch_size": 1}, "greater than or equal to 2"),
        ({"iterations": 1}, "greater than or equal to 4"),
        ({"model": "vgg"}, "'mlp', 'resnet18', 'resnet50' or 'transformer'"),
        ({"model": "transformer", "data": "cifar10"}, "synthetic data only"),
        ({"data_dir": "/etc"}, "unknown parameter of training"),
    ],
)
def test_wrong_parameters_are_refused(params, words):
    """The reason says what would be right; no parameter names a path."""
    (check,) = muster_checks(Config(Settings()))
    with pytest.raises(Refused, match=words):
        valid_params(check, params)


def test_every_device_learns_the_same(torch_child, codes, simulated_node):
    """All start from the same weights and see the same samples, so equal devices end with equal bits."""
    answer = torch_child.ask("training", simulated_node(devices=2))
    assert codes(answer) == []
    first, second = answer["metrics"]["loss_last"]
    assert first == second < 0.7 * answer["metrics"]["loss_first"][0]
    assert [len(set(results)) for results in answer["facts"]["fingerprints"].values()] == [1]
    assert answer["facts"]["simulated"] is True


def test_a_device_that_computes_wrongly_is_named(torch_child, codes, simulated_node):
    """One wrong element in one of a hundred products does not keep the loss from falling, and is found all the same."""
    corrupt = {"kind": "corrupt", "device": 1, "every": 100}
    answer = torch_child.ask("training", simulated_node(devices=3, faults=[corrupt]))
    assert codes(answer) == [("training.results_differ", "ERROR", 1)]
    assert max(answer["metrics"]["loss_ratio"]) < 0.7


def test_repeated_trainings_are_one_measurement(torch_child, codes):
    """All their steps count, and equal ones end with equal bits; such short ones have no spread."""
    params = {"device": "cpu", "batch_size": 32, "iterations": 10, "repeats": 3}
    answer = torch_child.ask("training", params=params)
    assert codes(answer) == []
    metrics = answer["metrics"]
    assert metrics["total_samples"] == [960]
    assert metrics["throughput_samples_per_s"][0] == pytest.approx(960 / metrics["total_time_s"][0])
    assert (metrics["changed_results"], metrics["throughput_spread"]) == ([0], [None])
    assert metrics["utilisation_percent"] == [None]


def test_a_device_that_computes_wrongly_is_named_without_others(torch_child, codes, simulated_node):
    """It is the only one of its node, and differs from itself."""
    corrupt = {"kind": "corrupt", "device": 0, "every": 100}
    answer = torch_child.ask("training", simulated_node(faults=[corrupt]), params={"repeats": 2})
    assert codes(answer) == [("training.results_change", "ERROR", 0)]


def test_a_device_that_vanishes_is_named_and_the_others_train(torch_child, codes, simulated_node):
    """An error of a device in the middle of its work is no end of the run."""
    answer = torch_child.ask("training", simulated_node(devices=2, faults=[{"kind": "lost", "device": 1}]))
    assert codes(answer) == [("training.device_failed", "UNKNOWN", 1)]
    trained, lost = answer["metrics"]["loss_ratio"]
    assert trained < 0.7
    assert lost is None


def test_fingerprints_tell_trainings_apart(torch_child):
    """The same seed gives the same fingerprint in every process, another seed another one."""
    runs = [torch_child.ask("training", params={"device": "cpu", "seed": seed}) for seed in (1, 1, 2)]
    first, again, other = (run["facts"]["fingerprints"] for run in runs)
    assert first == again != other


@pytest.mark.parametrize(
    ("model", "precision"),
    [
        ("transformer", "fp32"),
        ("transformer", "bf16"),
        ("transformer", "fp16"),
        ("resnet18", "fp32"),
        ("resnet18", "bf16"),
    ],
)
def test_models_train_in_every_precision(torch_child, codes, model, precision):
    """A few steps of the small variants, with finite losses."""
    params = {"device": "cpu", "model": model, "precision": precision, "warmup": 0, "iterations": 4}
    answer = torch_child.ask("training", params=params)
    assert codes(answer) == []
    assert answer["metrics"]["loss_last"][0] > 0
    assert answer["facts"] | {"model": model, "precision": precision, "steps": 4} == answer["facts"]


def test_resnet50_trains(torch_child, codes):
    """Its blocks are others than resnet18's."""
    params = {"device": "cpu", "model": "resnet50", "warmup": 0, "iterations": 4}
    assert codes(torch_child.ask("training", params=params)) == []


def idx(path, dimensions, data):
    path.parent.mkdir(exist_ok=True)
    sizes = b"".join(size.to_bytes(4, "big") for size in dimensions)
    path.write_bytes(gzip.compress(bytes([0, 0, 8, len(dimensions)]) + sizes + data))


@pytest.fixture
def data_node(tmp_path):
    """A node whose data directory holds 20 gray images of a data set."""
    pixels = b"".join(bytes([12 * number]) * 784 for number in range(20))
    idx(tmp_path / "fashion_mnist" / "train-images-idx3-ubyte.gz", (20, 28, 28), pixels)
    idx(tmp_path / "fashion_mnist" / "train-labels-idx1-ubyte.gz", (20,), bytes(number % 10 for number in range(20)))
    return {"plugins": {"training": {"data_dir": str(tmp_path)}}}


@pytest.mark.parametrize("model", ["mlp", "resnet18"])
def test_gray_images_train_networks_made_for_colour(torch_child, codes, data_node, model):
    """Their one channel becomes three."""
    params = {"device": "cpu", "model": model, "data": "fashion_mnist", "batch_size": 4, "iterations": 4, "warmup": 0}
    answer = torch_child.ask("training", data_node, params=params)
    assert codes(answer) == []
    assert answer["metrics"]["total_samples"] == [16]


@pytest.mark.parametrize(("data", "code"), [("cifar10", "data_missing"), ("imagenet", "data_missing")])
def test_a_data_set_that_is_not_there_is_a_finding(torch_child, codes, data_node, data, code):
    """It says nothing about the device, which is not judged."""
    answer = torch_child.ask("training", data_node, params={"device": "cpu", "data": data})
    assert codes(answer) == [(f"training.{code}", "UNKNOWN", None)]
    assert answer["metrics"] == {}


def test_data_without_a_directory_names_the_setting(torch_child):
    """Where data lies is for the operator to say, never for a parameter."""
    (finding,) = torch_child.ask("training", params={"device": "cpu", "data": "cifar100"})["findings"]
    assert finding["code"] == "training.data_unset"
    assert "plugins.training.data_dir" in finding["summary"]


def test_a_batch_that_does_not_fit_is_answered_by_one_that_does(torch_child):
    """It is found by trying: the batches themselves fit, but not what the network makes of one."""
    params = {"device": "cpu", "model": "transformer", "batch_size": 4096, "warmup": 0, "iterations": 4}
    answer = torch_child.ask("training", params=params, spare_bytes=340 << 20)
    (finding,) = answer["findings"]
    assert (finding["code"], finding["severity"]) == ("training.does_not_fit", "UNKNOWN")
    assert "batches of 4096 do not fit" in finding["summary"]
    assert "set batch_size=" in finding["summary"]


def test_batches_that_the_host_cannot_hold_are_refused(torch_child):
    """Before any device is asked."""
    params = {"device": "cpu", "model": "resnet18", "batch_size": 65536}
    (finding,) = torch_child.ask("training", params=params, spare_bytes=400 << 20)["findings"]
    assert (finding["code"], finding["severity"]) == ("training.does_not_fit", "UNKNOWN")
    assert "the host's memory" in finding["summary"]


def test_samples_are_counted_once(torch_child):
    """Samples per second are those of one device: its samples over its time."""
    metrics = torch_child.ask("training", params={"device": "cpu", "batch_size": 32, "iterations": 10})["metrics"]
    assert metrics["total_samples"] == [320]
    assert metrics["throughput_samples_per_s"][0] == pytest.approx(320 / metrics["total_time_s"][0])


def test_no_gpu_where_none_is_expected_is_skipped(torch_child):
    """A machine without GPUs is no fault, and no pass either."""
    assert torch_child.ask("training") == {"skipped": "no GPU here, none expected"}
