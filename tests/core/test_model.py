"""Instants, numbers, names and verdicts."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.cases import cases

from muster.model import (
    Data,
    Finding,
    Instant,
    Measurement,
    Name,
    Run,
    Severity,
    Verdict,
    format_instant,
    parse_instant,
    verdict_of,
    worst,
)

INSTANT = TypeAdapter(Instant)
NAME = TypeAdapter(Name)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", "2026-01-31T12:00:00.000Z"])
def test_instants_are_read_in_any_time_zone(text):
    """ISO 8601 with a time zone becomes seconds since the epoch."""
    assert parse_instant(text) == NOON


def test_instants_without_a_time_zone_are_refused():
    """A local time could mean anything."""
    with pytest.raises(ValueError, match="needs a time zone"):
        parse_instant("2026-01-31T12:00:00")


def test_instants_are_written_in_utc_with_milliseconds():
    """JSON has one form; Python has seconds."""
    assert format_instant(NOON + 0.5) == "2026-01-31T12:00:00.500Z"
    assert INSTANT.dump_python(NOON) == NOON
    assert INSTANT.dump_json(NOON) == b'"2026-01-31T12:00:00.000Z"'


@cases("value", [math.nan, math.inf, -1, 1e300, "soon", "9999-12-31T23:59:59-10:00"])
def test_instants_that_could_not_be_written_are_refused(value):
    """Whatever is accepted can be stored and served."""
    with pytest.raises(ValidationError):
        INSTANT.validate_python(value)


@given(st.floats(0, 253_402_300_799))
def test_every_instant_that_is_accepted_can_be_written(seconds):
    """Reading what was written gives the same millisecond."""
    written = INSTANT.dump_json(INSTANT.validate_python(seconds))
    assert INSTANT.validate_json(written) == pytest.approx(seconds, abs=0.0011, rel=0)


@pytest.mark.parametrize("name", ["node-1", "a", "rack.7_b", "0f"])
def test_names(name):
    """Letters, digits, dot, dash and underscore make a name."""
    assert NAME.validate_python(name) == name


@cases("name", ["", "-a", "a/b", "+", "#", "a b", "a\n", "ä", "x" * 254, ".."])
def test_names_that_would_be_unsafe_in_a_topic_a_url_or_a_path(name):
    """Separators, wildcards and what is longer than a host name are refused."""
    with pytest.raises(ValidationError):
        NAME.validate_python(name)


def test_numbers_that_json_lacks_become_none():
    """NaN and infinity say the same before and after a journey as JSON."""
    measurement = Measurement(metrics={"one": math.nan, "each": [1.0, math.inf, None]})
    assert measurement.metrics == {"one": None, "each": [1.0, None, None]}
    assert Measurement.model_validate_json(measurement.model_dump_json()) == measurement


def test_data_ignores_what_newer_peers_add():
    """An unknown field is not an error."""

    class Point(Data):
        x: int

    assert Point.model_validate({"x": 1, "y": 2}) == Point(x=1)


@pytest.mark.parametrize("seq", [-1, 1 << 53])
def test_sequence_numbers_fit_every_database(seq):
    """A number that a database could not hold is refused before it gets there."""
    with pytest.raises(ValidationError):
        Run(id="r", node="n", check="c", verdict=Verdict.PASS, started_at=0, duration_s=0, seq=seq)


@cases(
    ("verdicts", "together"),
    [
        ([], Verdict.SKIPPED),
        (["SKIPPED"], Verdict.SKIPPED),
        (["SKIPPED", "PASS"], Verdict.PASS),
        (["PASS", "WARN"], Verdict.WARN),
        (["WARN", "UNKNOWN"], Verdict.UNKNOWN),
        (["UNKNOWN", "FAIL", "PASS"], Verdict.FAIL),
    ],
)
def test_worst(verdicts, together):
    """The worst verdict stands for all; SKIPPED only when nothing was measured at all."""
    assert worst([Verdict(verdict) for verdict in verdicts]) is together


@cases(
    ("severities", "verdict"),
    [
        ([], "PASS"),
        (["INFO"], "PASS"),
        (["SKIPPED"], "PASS"),
        (["WARNING"], "WARN"),
        (["UNKNOWN"], "UNKNOWN"),
        (["ERROR"], "FAIL"),
        (["INFO", "WARNING", "UNKNOWN"], "UNKNOWN"),
        (["UNKNOWN", "ERROR"], "FAIL"),
    ],
)
def test_verdict_of_findings(severities, verdict):
    """Only an error fails a run; what could not be known is UNKNOWN, never FAIL."""
    findings = tuple(Finding(code="x.y", summary="z", severity=Severity(severity)) for severity in severities)
    assert verdict_of(findings) == verdict
