"""References: which row applies, and what a value is found to be against it."""

import math
import tomllib
from importlib import resources

import pytest

from muster.model import Severity
from muster.references import Reference, applicable, judge_value, shipped


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


def test_rows_of_other_checks_and_rows_that_do_not_fit_are_left_out():
    """Without a row there is nothing to judge by."""
    assert applicable([ANYWHERE], "training", {}) == {}
    assert applicable([ON_H100], "gemm", {}) == {}


BOUNDS = row(fail_below=10, warn_below=20, warn_above=80, fail_above=90, unit="TFLOP/s")


@pytest.mark.parametrize(
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
    """A bound itself is still good; the graver bound is told; the finding names value, bound and source."""
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
    assert all(reference.source for reference in shipped())
