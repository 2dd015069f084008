"""The check `gemm`."""

import pytest

from muster import Measurement, Reference
from muster_plugins.gemm import judge

FACTS = {"backend": "cuda", "simulated": False, "devices": [0, 1], "missing": [], "iterations": 5}

REFERENCES = {
    "tflops": Reference(check="gemm", metric="tflops", fail_below=500, warn_below=600, source="a test"),
    "spread": Reference(check="gemm", metric="spread", warn_above=0.05, source="a test"),
}


@pytest.mark.parametrize(
    ("metrics", "facts", "expected"),
    [
        ({"tflops": [700.0, 690.0], "spread": 0.01, "wrong_products": [0.0, 0.0]}, {}, []),
        ({"wrong_products": [0.0, 2.0]}, {}, [("gemm.corrupt", "ERROR", 1, "REPLACE")]),
        ({"tflops": [700.0, 590.0]}, {}, [("gemm.slow", "WARNING", 1, "INSPECT_HARDWARE")]),
        ({"tflops": [400.0, 700.0]}, {}, [("gemm.slow", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"spread": 0.06}, {}, [("gemm.spread", "WARNING", None, "NONE")]),
        ({}, {"devices": [], "missing": [0, 1]}, [("gemm.devices_missing", "ERROR", None, "INSPECT_HARDWARE")]),
        (
            {"wrong_products": [1.0]},
            {"devices": [3], "missing": [0]},
            [("gemm.devices_missing", "ERROR", None, "INSPECT_HARDWARE"), ("gemm.corrupt", "ERROR", 3, "REPLACE")],
        ),
    ],
)
def test_judgement(metrics, facts, expected):
    """Wrong products convict, references judge speed and spread, and the device is named by its index."""
    findings = judge(Measurement(metrics=metrics, facts=FACTS | facts), REFERENCES)
    assert [(each.code, each.severity, each.device, each.action) for each in findings] == expected


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_products_on_the_cpu_are_right_in_every_type(torch_child, codes, dtype):
    """The proof is exact: a healthy device never fails it by rounding."""
    answer = torch_child.ask("gemm", params={"device": "cpu", "dtype": dtype, "size": 1024, "iterations": 1})
    assert codes(answer) == []
    assert answer["metrics"]["wrong_products"] == [0.0]
    assert answer["metrics"]["tflops"][0] > 0
    assert answer["facts"] | {"backend": "cpu", "dtype": dtype, "simulated": False, "size": 1024} == answer["facts"]


def test_every_simulated_device_is_measured_and_says_so(torch_child, simulated_node):
    """One product for each, on the CPU; nothing of it can be taken for a real GPU's."""
    answer = torch_child.ask("gemm", simulated_node(devices=3), params={"size": 64})
    assert len(answer["metrics"]["tflops"]) == 3
    assert answer["facts"]["simulated"] is True
    assert "simulated" in answer["facts"]["gpu_model"]


def test_one_wrong_element_on_one_device_is_found(torch_child, codes, simulated_node):
    """Every proof product of the faulty device is wrong, and only that device is named."""
    node = simulated_node(devices=3, faults=[{"kind": "corrupt", "device": 1}])
    assert codes(torch_child.ask("gemm", node)) == [("gemm.corrupt", "ERROR", 1)]


def test_no_gpu_where_none_is_expected_is_skipped(torch_child):
    """A machine without GPUs is no fault, and no pass either."""
    assert torch_child.ask("gemm") == {"skipped": "no GPU here, none expected"}


@pytest.mark.parametrize("check", ["gemm", "training"])
def test_missing_gpus_are_named_by_index(torch_child, check):
    """What is expected and not there is a fault."""
    (finding,) = torch_child.ask(check, {"expected_gpus": 2})["findings"]
    assert (finding["code"], finding["severity"]) == (f"{check}.devices_missing", "ERROR")
    assert finding["evidence"] == {"missing": [0, 1]}


def test_a_missing_device_does_not_keep_the_others_from_being_measured(torch_child, codes, simulated_node):
    """The metrics stay in device order, and the index in the middle is named."""
    node = simulated_node(devices=3, faults=[{"kind": "missing", "device": 1}]) | {"expected_gpus": 3}
    answer = torch_child.ask("gemm", node, params={"size": 64})
    assert codes(answer) == [("gemm.devices_missing", "ERROR", None)]
    assert answer["findings"][0]["evidence"] == {"missing": [1]}
    assert answer["facts"]["devices"] == [0, 2]
