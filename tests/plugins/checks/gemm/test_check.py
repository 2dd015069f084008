"""The check `gemm`: its judgement of speed, its parameters, and what it measures on the CPU."""

import pytest
from tests.cases import cases

from muster import Measurement, Reference
from muster.check import valid_params
from muster.config import Config, Settings
from muster.errors import Refused
from muster.model import Json
from muster_plugins.checks.gemm.check import judge, muster_checks

(GEMM,) = muster_checks(Config(Settings()))

FACTS: Json = {"backend": "cuda", "simulated": False, "devices": [0, 1], "missing": []}

REFERENCES = {
    "tflops_bf16": Reference(check="gemm", metric="tflops_bf16", fail_below=500, warn_below=600, source="a test"),
    "spread_bf16": Reference(check="gemm", metric="spread_bf16", warn_above=0.05, source="a test"),
}

OUT_OF_MEMORY: Json = {"device": 0, "reason": "out_of_memory", "detail": "needs 2 GB", "evidence": {"free_bytes": 1}}

FAILED: Json = {
    "device": 1,
    "reason": "device_failed",
    "detail": "CUDA error: unspecified launch failure",
    "evidence": {},
}


@cases(
    ("metrics", "facts", "expected"),
    [
        ({"tflops_bf16": [700.0, 690.0], "spread_bf16": 0.01}, {}, []),
        ({"tflops_bf16": [700.0, 590.0]}, {}, [("gemm.slow", "WARNING", 1, "INSPECT_HARDWARE")]),
        ({"tflops_bf16": [400.0, 700.0]}, {}, [("gemm.slow", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"tflops_bf16": [None, 700.0]}, {}, []),
        ({"tflops_fp32": [1.0, 1.0]}, {}, []),
        ({"spread_bf16": 0.06}, {}, [("gemm.spread", "WARNING", None, "NONE")]),
        ({}, {"devices": [], "missing": [0, 1]}, [("gemm.not_asked", "UNKNOWN", None, "NONE")]),
        ({}, {"unsupported": {"fp8": "too old"}}, [("gemm.unsupported", "SKIPPED", None, "NONE")]),
        ({}, {"failed": [OUT_OF_MEMORY, OUT_OF_MEMORY]}, [("gemm.out_of_memory", "UNKNOWN", 0, "NONE")]),
        ({}, {"failed": [FAILED]}, [("gemm.device_failed", "UNKNOWN", 1, "INSPECT_HARDWARE")]),
        (
            {"wrong_products_bf16": [1.0]},
            {"devices": [3], "missing": [0]},
            [("gemm.devices_missing", "ERROR", None, "INSPECT_HARDWARE"), ("gemm.corrupt", "ERROR", 3, "REPLACE")],
        ),
    ],
)
def test_judgement(metrics, facts, expected):
    """References of the number format judge speed and spread; a failed device is no evidence."""
    findings = judge(Measurement(metrics=metrics, facts=FACTS | facts), REFERENCES)
    assert [(each.code, each.severity, each.device, each.action) for each in findings] == expected
    assert {finding.code for finding in findings} <= GEMM.finds.keys()


def test_what_fails_again_and_again_is_told_once():
    """One finding has the number of failures."""
    (finding,) = judge(Measurement(facts={**FACTS, "failed": [OUT_OF_MEMORY] * 4}), {})
    assert finding.evidence == {"free_bytes": 1, "times": 4}


@cases(
    ("params", "message"),
    [
        ({"size": 48}, "parameter of gemm 'size': must be greater than or equal to 64 (got 48)"),
        ({"size": 100}, "parameter of gemm 'size': must be a multiple of 16 (got 100)"),
        ({"size": 64, "shape": [64, 64, 64]}, "give size or shape, not both"),
        ({"dtypes": "bf16"}, "parameter of gemm 'dtypes': must be a list"),
        ({"dtypes": ["int4"]}, "parameter of gemm 'dtypes.0': must be 'fp32', 'tf32', 'bf16', 'fp16' or 'fp8'"),
        ({"iterations": 0}, "parameter of gemm 'iterations': must be greater than or equal to 1"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    """The error says what would be right."""
    with pytest.raises(Refused) as refused:
        valid_params(GEMM, params)
    assert message in str(refused.value)


@pytest.mark.parametrize(("dtype", "size"), [("fp32", 256), ("bf16", 256), ("fp16", 256), ("fp8", 64)])
def test_products_on_the_cpu_are_right_in_every_format(torch_child, codes, dtype, size):
    """The proof is exact, and the bits stay the same: a healthy device never fails by rounding."""
    answer = torch_child.ask("gemm", params={"device": "cpu", "dtypes": [dtype], "size": size, "warmup_s": 0})
    assert codes(answer) == []
    for kind in ("wrong", "changed", "not_finite"):
        assert answer["metrics"][f"{kind}_products_{dtype}"] == [0.0]
    assert answer["metrics"][f"tflops_{dtype}"][0] > 0
    facts = {"backend": "cpu", "dtypes": [dtype], "simulated": False, "shape": [size] * 3, "size": size}
    assert answer["facts"] | facts == answer["facts"]


def test_mean_median_and_best_of_any_shape_are_told(torch_child):
    """The best is at least the mean; the size that references are chosen by is the shortest edge."""
    params = {"device": "cpu", "shape": [64, 128, 256], "iterations": 3, "warmup_s": 0}
    answer = torch_child.ask("gemm", params=params)
    metrics = answer["metrics"]
    assert metrics["tflops_max_fp32"][0] >= max(metrics["tflops_fp32"][0], metrics["tflops_mean_fp32"][0])
    assert answer["facts"]["size"] == 64


def test_a_fingerprint_depends_on_the_seed_only(torch_child):
    """The same seed gives the same fingerprint, whatever ran before; another seed gives another one."""

    def fingerprint(seed):
        params = {"device": "cpu", "size": 64, "seed": seed, "warmup_s": 0}
        facts = torch_child.ask("gemm", params=params)["facts"]
        assert facts["software"]["torch"]
        return facts["fingerprints"]

    assert fingerprint(1) == fingerprint(1)
    ((product, bits),) = fingerprint(1).items()
    assert product == "fp32 64x64x64 seed 1"
    assert bits != fingerprint(2)["fp32 64x64x64 seed 2"]


def test_every_simulated_device_is_measured_and_says_so(torch_child, simulated_node):
    """Each device has its own product on the CPU, and everything is marked as simulated."""
    answer = torch_child.ask("gemm", simulated_node(devices=3), params={"size": 64})
    assert len(answer["metrics"]["tflops_fp32"]) == 3
    assert answer["facts"]["simulated"] is True
    assert "simulated" in answer["facts"]["gpu_model"]
    assert len(set(answer["facts"]["fingerprints"]["fp32 64x64x64 seed 1"])) == 1


def test_one_wrong_element_on_one_device_is_found(torch_child, codes, simulated_node):
    """Every proof product of the faulty device is wrong, and only that device is named."""
    node = simulated_node(devices=3, faults=[{"kind": "corrupt", "device": 1}])
    assert codes(torch_child.ask("gemm", node)) == [("gemm.corrupt", "ERROR", 1)]


def test_a_device_that_is_wrong_once_in_a_while_is_found(torch_child, codes, simulated_node):
    """The few proof products miss it, but the bits of the timed products differ."""
    node = simulated_node(devices=2, faults=[{"kind": "corrupt", "device": 1, "every": 7}])
    answer = torch_child.ask("gemm", node, params={"size": 64, "iterations": 20, "warmup_s": 0})
    assert codes(answer) == [("gemm.corrupt", "ERROR", 1)]
    assert answer["metrics"]["changed_products_fp32"][1] in (2.0, 3.0)


def test_a_device_that_vanishes_is_named_and_the_others_are_measured(torch_child, codes, simulated_node):
    """An error of CUDA does not judge the hardware, and the results of the other devices are kept."""
    node = simulated_node(devices=3, faults=[{"kind": "lost", "device": 1}])
    answer = torch_child.ask("gemm", node, params={"size": 64})
    assert codes(answer) == [("gemm.device_failed", "UNKNOWN", 1)]
    first, lost, last = answer["metrics"]["tflops_fp32"]
    assert lost is None
    assert first > 0 < last


def test_a_size_that_does_not_fit_says_what_does(torch_child, codes):
    """The largest size needs more than a terabyte, which is more than this machine has free."""
    answer = torch_child.ask("gemm", params={"device": "cpu", "size": 262144})
    assert codes(answer) == [("gemm.out_of_memory", "UNKNOWN", None)]
    finding = answer["findings"][0]
    assert finding["evidence"]["needed_bytes"] > 1e12
    assert f"free are {finding['evidence']['free_bytes'] / 1e9:.3g} GB: size" in finding["summary"]


def test_a_format_that_the_device_lacks_is_named(torch_child, codes):
    """It was not measured, which is neither good nor bad."""
    answer = torch_child.ask("gemm", params={"device": "cpu", "dtypes": ["tf32", "fp32"], "size": 64})
    assert codes(answer) == [("gemm.unsupported", "SKIPPED", None)]
    assert "tflops_tf32" not in answer["metrics"]
    assert torch_child.ask("gemm", params={"device": "cpu", "dtypes": ["tf32"]}) == {
        "skipped": "no device here supports tf32"
    }


def test_no_gpu_where_none_is_expected_is_skipped(torch_child):
    """A machine without GPUs is no fault, and no pass either."""
    assert torch_child.ask("gemm") == {"skipped": "no GPU here, none expected"}


@pytest.mark.parametrize("check", ["gemm", "memory", "training"])
def test_gpus_that_cannot_be_asked_are_unknown(torch_child, check):
    """If CUDA finds no device, this is no evidence that all expected devices are gone."""
    (finding,) = torch_child.ask(check, {"expected_gpus": 8})["findings"]
    assert (finding["code"], finding["severity"]) == (f"{check}.not_asked", "UNKNOWN")
    assert finding["summary"] == "no GPU could be queried, 8 expected; the check nvml says why"


def test_a_missing_device_does_not_keep_the_others_from_being_measured(torch_child, codes, simulated_node):
    """The metrics stay in device order, and the index in the middle is named."""
    node = simulated_node(devices=3, faults=[{"kind": "missing", "device": 1}]) | {"expected_gpus": 3}
    answer = torch_child.ask("gemm", node, params={"size": 64})
    assert codes(answer) == [("gemm.devices_missing", "ERROR", None)]
    assert answer["findings"][0]["evidence"] == {"missing": [1]}
    assert answer["facts"]["devices"] == [0, 2]
