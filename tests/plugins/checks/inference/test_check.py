"""The check `inference`."""

import pytest
from tests.cases import cases

from muster import Measurement, Reference
from muster.check import valid_params
from muster.config import Config, Settings
from muster.errors import Refused
from muster.model import Json
from muster.references import applicable, shipped
from muster_plugins.checks.inference.check import judge, muster_checks

(INFERENCE,) = muster_checks(Config(Settings()))

FACTS: Json = {
    "devices": [0, 1, 2],
    "models": ["H200", "H200", "H200"],
    "missing": [],
    "precision": "bf16",
    "repeats": 3,
    "fingerprints": {"generation": ["a", "a", "a"]},
}
GOOD = {"cache_error": [0.01, 0.01, 0.1], "decode_tokens_per_s": [900, 905, 910], "changed_results": [0, 0, 0]}
SLOW = Reference(check="inference", metric="decode_tokens_per_s", fail_below=800, source="a test")


@cases(
    ("metrics", "facts", "expected"),
    [
        ({}, {}, []),
        ({"cache_error": [0.01, 0.11, 0.01]}, {}, [("cache_wrong", "ERROR", 1)]),
        ({"cache_error": [0.01, 0.02, 0.01]}, {"precision": "fp16"}, [("cache_wrong", "ERROR", 1)]),
        ({"cache_error": [1e-6, 2e-4, 1e-6]}, {"precision": "fp32"}, [("cache_wrong", "ERROR", 1)]),
        ({"cache_error": [None, 0.01, 0.01]}, {}, [("not_finite", "ERROR", 0)]),
        ({"decode_tokens_per_s": [900, 905, 790]}, {}, [("slow", "ERROR", 2)]),
        ({"changed_results": [0, 2, 0]}, {}, [("results_change", "ERROR", 1)]),
        ({}, {"fingerprints": {"generation": ["a", "b", "a"]}}, [("results_differ", "ERROR", 1)]),
        ({}, {"fingerprints": {"generation": ["a", "b", "c"]}}, [("disagreement", "UNKNOWN", None)]),
        ({}, {"missing": [3]}, [("devices_missing", "ERROR", None)]),
        (
            {"cache_error": [0.01, None, 0.01]},
            {
                "fingerprints": {"generation": ["a", None, "a"]},
                "failed": [{"device": 1, "reason": "out_of_memory", "detail": "no", "evidence": {}}],
            },
            [("out_of_memory", "UNKNOWN", 1)],
        ),
    ],
)
def test_judgement(metrics, facts, expected):
    """Wrong logits and odd bits name the device; one that could not generate is no evidence."""
    measured = FACTS | facts
    rows = applicable((*shipped(), SLOW), "inference", measured)
    findings = judge(Measurement(metrics=GOOD | metrics, facts=measured), rows)
    named = [(each.code.removeprefix("inference."), each.severity, each.device) for each in findings]
    assert named == expected
    assert {finding.code for finding in findings} <= INFERENCE.finds.keys()


@cases(
    ("params", "words"),
    [
        ({"precision": "int4"}, "must be 'fp32', 'bf16' or 'fp16'"),
        ({"prompt_tokens": 1}, "greater than or equal to 2"),
        ({"new_tokens": 0}, "greater than or equal to 2"),
        ({"model": "llama"}, "unknown parameter of inference"),
    ],
)
def test_wrong_parameters_are_refused(params, words):
    """The reason says what would be right."""
    with pytest.raises(Refused, match=words):
        valid_params(INFERENCE, params)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_tokens_are_generated_in_every_precision(torch_child, codes, precision):
    """With and without the cache, the logits are equal but for rounding."""
    answer = torch_child.ask("inference", params={"device": "cpu", "precision": precision, "repeats": 2})
    assert codes(answer) == []
    metrics, facts = answer["metrics"], answer["facts"]
    assert metrics["changed_results"] == [0]
    assert metrics["cache_error"][0] >= 0
    assert min(metrics["prefill_tokens_per_s"] + metrics["decode_tokens_per_s"]) > 0
    assert facts | {"precision": precision, "prompt_tokens": 16, "new_tokens": 8, "backend": "cpu"} == facts


def test_tokens_of_all_sequences_count(torch_child):
    """In the speed of decoding, each step brings a token for each sequence."""
    params = {"device": "cpu", "batch_size": 8, "new_tokens": 2, "repeats": 1}
    metrics = torch_child.ask("inference", params=params)["metrics"]
    (token_s,), (tokens_per_s,) = metrics["token_time_s"], metrics["decode_tokens_per_s"]
    assert tokens_per_s == pytest.approx(8 / token_s)  # the median of two steps is half of what both take


def test_a_fingerprint_depends_on_the_seed_only(torch_child):
    """The same seed gives the same bits in every process, another seed other ones."""
    asked = [torch_child.ask("inference", params={"device": "cpu", "repeats": 1, "seed": seed}) for seed in (1, 1, 2)]
    (first, again, (other,)) = ([*answer["facts"]["fingerprints"].values()] for answer in asked)
    assert first == again != [other]


def test_equal_devices_end_with_equal_bits(torch_child, codes, simulated_node):
    """All have the same weights and prompts."""
    answer = torch_child.ask("inference", simulated_node(devices=2))
    assert codes(answer) == []
    assert [len(set(results)) for results in answer["facts"]["fingerprints"].values()] == [1]
    assert answer["facts"]["simulated"] is True


def test_a_device_that_computes_wrongly_is_named(torch_child, codes, simulated_node):
    """One that always makes the same mistake differs from the others, one that makes it now and then from itself."""
    always, sometimes = ({"kind": "corrupt", "device": 1, "every": every} for every in (1, 150))
    answer = torch_child.ask("inference", simulated_node(devices=3, faults=[always]))
    assert ("inference.results_differ", "ERROR", 1) in codes(answer)
    assert {device for _, _, device in codes(answer)} == {1}
    answer = torch_child.ask("inference", simulated_node(devices=2, faults=[sometimes]))
    assert ("inference.results_change", "ERROR", 1) in codes(answer)


def test_a_device_that_is_lost_is_named_and_the_others_generate(torch_child, codes, simulated_node):
    """An error of a device in the middle of its work is no end of the run."""
    answer = torch_child.ask("inference", simulated_node(devices=2, faults=[{"kind": "lost", "device": 1}]))
    assert codes(answer) == [("inference.device_failed", "UNKNOWN", 1)]
    generated, lost = answer["metrics"]["decode_tokens_per_s"]
    assert generated > 0
    assert lost is None


def test_what_does_not_fit_into_memory_is_no_fault(torch_child, codes):
    """The cache of that many sequences takes more than the run may have."""
    params = {"device": "cpu", "batch_size": 4096, "prompt_tokens": 512, "repeats": 1}
    answer = torch_child.ask("inference", params=params, spare_bytes=400 << 20)
    assert codes(answer) == [("inference.out_of_memory", "UNKNOWN", None)]


def test_no_gpu_where_none_is_expected_is_skipped(torch_child):
    """A machine without GPUs is no fault, and no pass either."""
    assert torch_child.ask("inference") == {"skipped": "no GPU here, none expected"}
