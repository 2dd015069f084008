"""What wrong products and differing fingerprints say about devices."""

from tests.cases import cases

from muster import Measurement
from muster.model import Json, Metric
from muster_plugins.checks.gemm.corruption import FINDS, corrupt, deviating

DTYPES = ("fp32", "bf16")

PRODUCT = "bf16 8192x8192x8192 seed 1"


@cases(
    ("metrics", "convicted"),
    [
        ({}, []),
        ({"wrong_products_bf16": [0.0, 0.0, None]}, []),
        ({"wrong_products_bf16": [0.0, 2.0, 0.0]}, [1]),
        ({"changed_products_fp32": [1.0, 0.0, 0.0]}, [0]),
        ({"not_finite_products_bf16": [0.0, 0.0, 1.0]}, [7]),
        ({"wrong_products_bf16": [0.0, 2.0, 0.0], "changed_products_fp32": [0.0, 9.0, 0.0]}, [1]),
    ],
)
def test_wrong_products_convict_their_device(metrics, convicted):
    """Wrong sums, other bits and infinities alike, with one finding for each device."""
    findings = corrupt(Measurement(metrics=metrics, facts={"devices": [0, 1, 7]}), DTYPES)
    assert [finding.device for finding in findings] == convicted
    assert {(finding.code, finding.severity, finding.action) for finding in findings} <= {
        ("gemm.corrupt", "ERROR", "REPLACE")
    }


def test_a_convict_is_told_with_all_its_counts():
    """The finding has the kind, the number format and the number of wrong products."""
    metrics: dict[str, Metric] = {"wrong_products_bf16": [2.0], "changed_products_fp32": [9.0]}
    (finding,) = corrupt(Measurement(metrics=metrics, facts={"devices": [0]}), DTYPES)
    assert finding.evidence == {"wrong_products_bf16": 2.0, "changed_products_fp32": 9.0}
    assert finding.summary == ("9 products in fp32 differ in bits from the first, 2 products in bf16 have wrong sums")


@cases(
    ("bits", "models", "convicted", "expected"),
    [
        (["a", "a", "a"], "XXX", set(), []),
        (["a", "b", "a"], "XXX", set(), [("gemm.deviates", "ERROR", 1, "REPLACE")]),
        (["a", "b", "a"], "XYX", set(), []),
        (["a", "b", "a"], "XXX", {1}, []),
        (["a", "b", None], "XXX", set(), [("gemm.disagreement", "UNKNOWN", None, "INSPECT_HARDWARE")]),
        (["a", "b", "c"], "XXX", set(), [("gemm.disagreement", "UNKNOWN", None, "INSPECT_HARDWARE")]),
        ([None, None, None], "XXX", set(), []),
    ],
)
def test_devices_of_one_model_must_come_to_the_same_bits(bits, models, convicted, expected):
    """The majority of a model is right; without one no device is convicted, and convicted devices do not count."""
    facts: Json = {"devices": [0, 1, 2], "models": [*models], "fingerprints": {PRODUCT: bits}}
    findings = deviating(Measurement(facts=facts), convicted)
    assert [(each.code, each.severity, each.device, each.action) for each in findings] == expected
    assert {finding.code for finding in findings} <= FINDS.keys()


def test_both_suspects_are_named():
    """If two devices disagree, either may be wrong."""
    facts: Json = {"devices": [2, 5], "models": ["X", "X"], "fingerprints": {PRODUCT: ["a", "b"]}}
    (finding,) = deviating(Measurement(facts=facts), set())
    assert finding.evidence == {PRODUCT: {"model": "X", "bits": {"2": "a", "5": "b"}}}
