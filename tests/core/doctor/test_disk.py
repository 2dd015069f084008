"""Whether a directory can be written, and has room."""

from pathlib import Path

from muster.doctor.disk import disk
from muster.model import Verdict


def test_a_directory_with_room_is_well(tmp_path):
    """Nothing stays in it. One that does not exist yet is looked at where it would be created, and not created."""
    for directory in (tmp_path, tmp_path / "data" / "muster"):
        found = disk(directory, 1e6, "the outbox")
        assert (found.verdict, found.detail.startswith(f"{tmp_path} has ")) == (Verdict.PASS, True)
    assert list(tmp_path.iterdir()) == []


def test_too_little_room_is_said(tmp_path):
    """With what is still to come."""
    found = disk(tmp_path, 1e18, "the database")
    assert found.verdict is Verdict.WARN
    assert found.detail.endswith("GB free, and the database may take 1000000000.0 GB more")


def test_what_cannot_be_written_is_said():
    """The kernel's own files refuse it to root as well."""
    found = disk(Path("/proc/self/muster"), 0.0, "the outbox")
    assert (found.verdict, "cannot be written" in found.detail) == (Verdict.FAIL, True), found
