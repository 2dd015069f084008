"""The check `storage`, with the real fio on small files."""

import errno
import os
import time
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.cases import cases

from muster import Config, Measurement, Reference, Skip
from muster.config import Settings
from muster.errors import SettingsError
from muster_plugins.checks.storage import check as storage
from muster_plugins.checks.storage.check import StorageParams, StorageSettings, judge
from muster_plugins.checks.storage.measure import measure

QUICK = StorageParams(size_mib=4, runtime_s=0.1)

SPEEDS = {
    f"{job}_{unit}"
    for job in ("seq_write", "seq_read", "rand_read", "rand_write")
    for unit in ("gbps", "iops", "p99_s")
}


def told(findings) -> list[tuple]:
    return [(each.code, each.severity, each.action) for each in findings]


@pytest.fixture
def directory(live, tmp_path):
    path = tmp_path / "measured"
    path.mkdir()
    return path


@pytest.fixture
def stand_in(live, tmp_path):
    """An executable in the place of fio, with this shell script as its body."""

    def write(body: str) -> str:
        path = tmp_path / "fio"
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return write


def test_a_directory_is_measured_and_left_as_it_was(bare_context, directory):
    """Bandwidth, operations and latency of every job, and no scratch file afterwards."""
    measurement = measure(StorageSettings(directory=directory), QUICK, bare_context())
    assert set(measurement.metrics) == SPEEDS
    assert all(isinstance(value, float) and value > 0 for value in measurement.metrics.values())
    assert measurement.facts | {"directory": str(directory), "size_mib": 4, "random_kib": 4} == measurement.facts
    assert list(directory.iterdir()) == []
    assert [code for code, *_ in told(judge(measurement, {}))] in ([], ["storage.not_direct"])


def test_the_scratch_file_never_has_a_name(bare_context, directory, stand_in):
    """So its space comes back even when everything is killed while fio runs."""
    fio = stand_in(f"ls -A {directory}; exit 1")
    measurement = measure(StorageSettings(directory=directory, fio=fio), QUICK, bare_context())
    (finding,) = judge(measurement, {})
    assert (finding.code, finding.evidence) == ("storage.fio_failed", {"output": ""})


def test_an_fio_that_hangs_is_ended(bare_context, directory, stand_in):
    """Before the deadline of the run, so that it has a name."""
    started = time.monotonic()
    settings = StorageSettings(directory=directory, fio=stand_in("sleep 600"))
    measurement = measure(settings, QUICK, bare_context(timeout_s=0.5))
    assert told(judge(measurement, {})) == [("storage.timed_out", "UNKNOWN", "NONE")]
    assert time.monotonic() - started < 60


def test_without_a_directory_nothing_is_measured(bare_context):
    """Nobody has said what to measure."""
    with pytest.raises(Skip, match=r"plugins\.storage\.directory"):
        measure(StorageSettings(), QUICK, bare_context())


def test_too_little_space_is_refused_with_what_would_fit(bare_context, directory):
    """The file takes at most half of what is free, and nothing is written."""
    params = StorageParams(size_mib=1 << 20)
    (finding,) = judge(measure(StorageSettings(directory=directory), params, bare_context()), {})
    assert (finding.code, finding.severity) == ("storage.no_space", "UNKNOWN")
    assert "size_mib can be at most" in finding.summary


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"directory": "/nonexistent"}, "storage.directory_unusable"),
        ({"directory": "/etc/hostname"}, "storage.directory_unusable"),
        ({"fio": "/nonexistent/fio"}, "storage.fio_missing"),
        ({"fio": "true"}, "storage.garbage"),
        ({"fio": "false"}, "storage.fio_failed"),
    ],
)
def test_what_cannot_be_measured_is_unknown(bare_context, directory, settings, code):
    """None of it says anything about the device."""
    measurement = measure(StorageSettings(**{"directory": directory, **settings}), QUICK, bare_context())
    assert told(judge(measurement, {})) == [(code, "UNKNOWN", "NONE")]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EIO, ("storage.io_error", "ERROR", "INSPECT_HARDWARE")),
        (errno.ENODATA, ("storage.io_error", "ERROR", "INSPECT_HARDWARE")),
        (errno.ENOSPC, ("storage.job_failed", "UNKNOWN", "NONE")),
    ],
)
def test_only_an_error_of_the_device_convicts(bare_context, directory, stand_in, number, expected):
    """A medium that cannot be read is evidence, a file system that fills up meanwhile is none."""
    recorded = (Path(__file__).parent / "recorded/3.33_device_full.txt").read_text(encoding="utf-8")
    report = directory.parent / "report"
    report.write_text(recorded.replace('"error" : 28', f'"error" : {number}'), encoding="utf-8")
    settings = StorageSettings(directory=directory, fio=stand_in(f"cat {report}; exit 1"))
    (finding,) = [
        each for each in judge(measure(settings, QUICK, bare_context()), {}) if each.code != "storage.not_direct"
    ]
    assert told([finding]) == [expected]
    assert finding.summary == f"fio's job seq_write failed: {os.strerror(number)}"


@cases(
    ("metrics", "facts", "expected"),
    [
        ({"seq_read_gbps": 5.0, "rand_read_p99_s": 0.001}, {"direct": True}, []),
        ({"seq_read_gbps": 5.0}, {"direct": False}, [("storage.not_direct", "SKIPPED", "NONE")]),
        ({"seq_read_gbps": 1.0}, {"direct": True}, [("storage.slow", "ERROR", "NONE")]),
        ({"rand_read_p99_s": 0.02}, {"direct": True}, [("storage.latency", "WARNING", "NONE")]),
        ({"rand_write_iops": 5.0}, {"direct": True}, []),
    ],
)
def test_speed_is_judged_by_what_the_operator_expects(metrics, facts, expected):
    """A figure without a reference is recorded and judged by nobody."""
    references = {
        "seq_read_gbps": Reference(check="storage", metric="seq_read_gbps", fail_below=2, source="a test"),
        "rand_read_p99_s": Reference(check="storage", metric="rand_read_p99_s", warn_above=0.01, source="a test"),
    }
    assert told(judge(Measurement(metrics=metrics, facts=facts), references)) == expected


@cases(
    ("params", "text"),
    [
        ({"size_mib": 0}, "greater than or equal to 1"),
        ({"runtime_s": 0}, r"greater than or equal to 0\.1"),
        ({"random_kib": 5}, "multiple of 4"),
        ({"size_mib": 1, "sequential_kib": 2048}, "at most the size of the file, 1024 KiB"),
        ({"engine": "sync; rm -rf /"}, "'libaio', 'io_uring' or 'psync'"),
        ({"directory": "/"}, "Extra inputs"),
    ],
)
def test_parameters_have_bounds(params, text):
    """What to measure cannot be sent at all, and how only within bounds."""
    with pytest.raises(ValidationError, match=text):
        StorageParams(**params)


def test_a_relative_directory_is_refused_at_start():
    """The agent's working directory is nothing to rely on."""
    config = Config(Settings.model_validate({"plugins": {"storage": {"directory": "scratch"}}}))
    with pytest.raises(SettingsError, match=r"'plugins\.storage\.directory': must be an absolute path"):
        storage.muster_configure(config)
