"""What fio says, in several versions and broken."""

import json
from pathlib import Path

import pytest
from tests.cases import cases

from muster_plugins.checks.storage import fio
from muster_plugins.shared.programs import Completed
from muster_plugins.shared.unmeasured import Unmeasured

RECORDED = Path(__file__).parent / "recorded"


def completed(stdout: str, exit_code: int = 0, stderr: str = "") -> Completed:
    return Completed(exit_code=exit_code, stdout=stdout, stderr=stderr, duration_s=1.0, truncated=False)


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


def test_a_recorded_report_is_understood():
    """Every job, behind the notes that fio writes first."""
    found = fio.speeds(completed(recorded("3.33")))
    assert list(found) == ["seq_write", "seq_read", "rand_read", "rand_write"]
    for speed in found.values():
        assert 0 < speed.gbps < 100
        assert speed.iops > 0
        assert 0 < speed.p99_s < 1


def test_older_units_are_converted():
    """Before fio 3 bandwidth was told in KiB/s and latency in microseconds; a job that wrote has read nothing."""
    report = json.loads(recorded("2.2.10").partition("\n")[2])
    (job,) = report["jobs"]
    report["jobs"] = [job | {"jobname": name} for name in fio.JOBS]
    found = fio.speeds(completed(json.dumps(report)))
    assert found["rand_write"] == pytest.approx((15624.7 * 4096 / 1e9, 15624.7, 8.64e-3), rel=1e-4)
    assert found["rand_read"] == (0, 0, 0)


def test_an_error_of_a_job_is_told_with_its_number():
    """A report of fio can hold figures of a job that failed; they do not count."""
    with pytest.raises(fio.FioJobFailed) as raised:
        fio.speeds(completed(recorded("3.33_device_full"), exit_code=2))
    assert (raised.value.job, raised.value.errno) == ("seq_write", 28)


@cases(
    ("done", "word", "text"),
    [
        (completed("", 1, "fio: engine none not loadable"), "fio_failed", "fio ended with 1"),
        (completed(""), "garbage", "cannot be read"),
        (completed("no report"), "garbage", "cannot be read"),
        (completed(recorded("3.33")[:5000]), "garbage", "cannot be read"),
        (completed('{"jobs": []}'), "garbage", "lacks 'seq_write'"),
        (completed('{"jobs": "none"}'), "garbage", "cannot be read"),
        (completed("[" * 100_000), "garbage", "cannot be read"),
        (completed(recorded("3.33").replace('"99.000000"', '"95.000000"')), "garbage", "lacks '99.000000'"),
    ],
)
def test_what_is_no_report_is_named(done, word, text):
    """Truncated, senseless and missing reports are told apart from an fio that did not start."""
    with pytest.raises(Unmeasured, match=text) as raised:
        fio.speeds(done)
    assert raised.value.word == word
