"""References: which row applies, and what a value is found to be against it."""

import math
import tomllib
from importlib import resources

import pytest
from pydantic import ValidationError
from tests.cases import cases

from muster.model import Severity
from muster.references import Origin, Reference, ReferenceRow, applicable, explain, judge_value, pointless, shipped


def row(**values: object) -> Reference:
    return Reference.model_validate({"check": "gemm", "metric": "tflops", "source": "test", **values})


ANYWHERE = row(fail_below=1)
ON_H100 = row(when={"gpu_model": "H100"}, fail_below=2)
ON_H100_BF16 = row(when={"gpu_model": "H100", "dtype": "bf16"}, fail_below=3)


@pytest.mark.parametrize(
    ("facts", "chosen"),
    [
        ({}, ANYWHERE),
        ({"gpu_model": "A100"}, ANYWHERE),
        ({"gpu_model": "H100"}, ON_H100),
        ({"gpu_model": "H100", "dtype": "bf16", "more": 1}, ON_H100_BF16),
    ],
)
def test_the_row_with_the_most_conditions_wins(facts, chosen):
    """A row applies when all its conditions hold, and the most specific one counts."""
    assert applicable([ON_H100_BF16, ANYWHERE, ON_H100], "gemm", facts) == {"tflops": chosen}


def test_of_equal_rows_the_last_wins():
    """An operator's rows come after the shipped ones and take their place."""
    mine = row(fail_below=9)
    assert applicable([ANYWHERE, mine], "gemm", {}) == {"tflops": mine}


SHIPPED_FOR_H100 = row(when={"gpu_model": "H100"}, fail_below=2, origin="shipped")


@pytest.mark.parametrize("rows", [(ANYWHERE, SHIPPED_FOR_H100), (SHIPPED_FOR_H100, ANYWHERE)])
def test_an_operators_row_goes_before_a_shipped_one(rows):
    """The number of conditions and the position of the shipped row do not matter."""
    assert applicable(rows, "gemm", {"gpu_model": "H100"}) == {"tflops": ANYWHERE}


def test_where_no_operators_row_fits_the_shipped_one_applies():
    """An operator's row for other facts changes nothing."""
    assert applicable([ON_H100_BF16, SHIPPED_FOR_H100], "gemm", {"gpu_model": "H100"}) == {"tflops": SHIPPED_FOR_H100}


@cases(
    ("when", "fits"),
    [
        ({"nodes": [2, 4]}, True),
        ({"nodes": [4, 8]}, False),
        ({"size_bytes": {"at_least": 1 << 20}}, True),
        ({"size_bytes": {"at_most": 1 << 20}}, False),
        ({"nodes": {"at_least": 2, "at_most": 2}, "size_bytes": {"at_least": 8 << 20}}, True),
    ],
)
def test_lists_and_ranges_are_conditions_too(when, fits):
    """Any of several values, and numbers between bounds."""
    assert bool(applicable([row(when=when, fail_below=1)], "gemm", {"nodes": 2, "size_bytes": 8 << 20})) is fits


def test_an_explanation_says_of_every_row_why():
    """The one that applies stands first; each of the others has its reason."""
    last, first = row(fail_below=5, when={"dtype": "bf16"}), row(fail_below=4, when={"gpu_model": "H100"})
    other = row(metric="spread", warn_above=1, when={"nodes": {"at_least": 2}, "dtype": ["fp8", "fp16"]})
    rows = [SHIPPED_FOR_H100, ANYWHERE, first, last, ON_H100_BF16, other, row(check="training", fail_below=1)]
    facts = {"gpu_model": "H100", "dtype": "bf16"}
    explained = explain(rows, "gemm", facts)
    assert [(it.reference, it.applies, it.reason) for it in explained["tflops"]] == [
        (ON_H100_BF16, True, "all its conditions are met"),
        (SHIPPED_FOR_H100, False, "the operator's reference overrides the shipped one"),
        (ANYWHERE, False, "has fewer conditions than the one that applies (0 against 2)"),
        (first, False, "has fewer conditions than the one that applies (1 against 2)"),
        (last, False, "has fewer conditions than the one that applies (1 against 2)"),
    ]
    assert [(it.applies, it.reason) for it in explained["spread"]] == [
        (False, 'nodes must be at least 2, is not known; dtype must be "fp8" or "fp16", is "bf16"')
    ]
    assert set(explained) == {"tflops", "spread"}


def test_an_explanation_of_equals():
    """Without conditions a row applies everywhere, and of two such rows the later one does."""
    mine = row(fail_below=9)
    assert [(it.reference, it.reason) for it in explain([ANYWHERE, mine], "gemm", {})["tflops"]] == [
        (mine, "applies everywhere"),
        (ANYWHERE, "as specific as the one that applies, which comes after it"),
    ]


@pytest.mark.parametrize("facts", [{}, {"gpu_model": "H100"}, {"gpu_model": "H100", "dtype": "bf16"}])
def test_an_explanation_names_the_row_that_applies(facts):
    """An explanation always agrees with the judgement."""
    rows = [SHIPPED_FOR_H100, ON_H100, ON_H100_BF16, row(fail_below=1, origin="shipped")]
    applies = {metric: items[0].reference for metric, items in explain(rows, "gemm", facts).items() if items[0].applies}
    assert applies == applicable(rows, "gemm", facts)


def test_the_key_of_a_row_is_its_check_metric_and_conditions():
    """In whatever order the conditions are given; bounds and origin do not matter."""
    one = row(fail_below=1, when={"a": 1, "b": [2]})
    same = row(warn_above=2, when={"b": [2], "a": 1}, origin="shipped")
    assert one.key == same.key
    others = [row(fail_below=1), row(fail_below=1, metric="x"), row(fail_below=1, check="x"), ON_H100]
    assert len({one.key, *(other.key for other in others)}) == 5


@cases(
    ("values", "words"),
    [
        ({}, "give at least one of fail_below, warn_below, warn_above, fail_above"),
        ({"fail_below": 2, "warn_below": 1}, r"fail_below, warn_below must not fall in this order, as 2\.0, 1\.0 do"),
        ({"warn_below": 3, "fail_above": 1}, "must not fall"),
        ({"fail_below": math.nan}, "finite"),
        ({"fail_below": 1, "source": ""}, "at least 1 character"),
        ({"fail_below": 1, "check": "no name"}, "pattern"),
        ({"fail_below": 1, "when": {"nodes": []}}, "any of them"),
    ],
)
def test_a_wrong_row_is_refused(values, words):
    """A row that could judge nothing, or nothing sensible, does not come to be."""
    with pytest.raises(ValidationError, match=words):
        row(**values)


def test_a_row_that_is_written_has_no_other_fields():
    """A field with a slip is refused, and so is an origin; from the wire, what newer peers say is ignored."""
    written = {"check": "gemm", "metric": "tflops", "fail_below": 1, "source": "test"}
    for name in ("fail_belo", "origin"):
        with pytest.raises(ValidationError, match="Extra inputs"):
            ReferenceRow.model_validate({**written, name: "shipped"})
    assert Reference.model_validate({**written, "newer": 1}).origin is Origin.OPERATOR


def test_rows_of_other_checks_and_rows_that_do_not_fit_are_left_out():
    """Without a row there is nothing to judge by."""
    assert applicable([ANYWHERE], "training", {}) == {}
    assert applicable([ON_H100], "gemm", {}) == {}


BOUNDS = row(fail_below=10, warn_below=20, warn_above=80, fail_above=90, unit="TFLOP/s")


@cases(
    ("value", "severity", "words"),
    [
        (9.9, Severity.ERROR, "tflops 9.9 TFLOP/s is below 10"),
        (10, Severity.WARNING, "below 20"),
        (20, None, ""),
        (80, None, ""),
        (80.1, Severity.WARNING, "above 80"),
        (91, Severity.ERROR, "above 90"),
    ],
)
def test_a_value_against_its_bounds(value, severity, words):
    """A value equal to a bound is good; the graver bound decides; the finding names value, bound and source."""
    findings = judge_value(value, BOUNDS, code="gemm.slow", device=3)
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])
    for finding in findings:
        assert words in finding.summary
        assert (finding.code, finding.device) == ("gemm.slow", 3)
        assert finding.evidence["source"] == "test"


@pytest.mark.parametrize("value", [None, math.nan])
def test_what_was_not_measured_is_not_judged(value):
    """Neither a missing value nor a missing reference is a finding."""
    assert judge_value(value, BOUNDS, code="x.y") == []
    assert judge_value(1.0, None, code="x.y") == []


def test_shipped_rows_name_their_source_and_hold_nothing_unknown():
    """Every shipped row is read completely, has a bound and says where its figures come from."""
    text = resources.files("muster").joinpath("references.toml").read_text(encoding="utf-8")
    bounds = {"fail_below", "warn_below", "warn_above", "fail_above"}
    for table in tomllib.loads(text)["reference"]:
        assert set(table) <= set(Reference.model_fields)
        assert set(table) & bounds
    assert {reference.origin for reference in shipped()} == {Origin.SHIPPED}


@cases(
    ("check", "metric", "words"),
    [
        ("gemm", "tflops_bf16", None),
        ("gemm", "tflop", "unknown metric of gemm that is judged 'tflop'; did you mean 'tflops'?"),
        ("gem", "tflops", "unknown check 'gem'; did you mean 'gemm'?"),
        ("nvml", "temperature_c", None),
        ("script.nhc", "anything", None),
    ],
)
def test_a_row_that_judges_nothing_is_found_out(check, metric, words):
    """A check lists its judged metrics, and shipped rows may add some; without a list, any metric is possible."""
    row = Reference(check=check, metric=metric, fail_below=1.0, source="x")
    reason = pointless(row, {"gemm": ("tflops", "tflops_bf16"), "nvml": ("ecc",), "script.nhc": ()})
    assert reason is None if words is None else words in (reason or "")
