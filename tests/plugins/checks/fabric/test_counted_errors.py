"""What the check `fabric` makes of the error counters of ports."""

import errno
import os
from pathlib import Path

import pytest

from muster_plugins.checks.fabric.counters import COUNTERS


@pytest.mark.parametrize(
    ("name", "added", "severity"),
    [
        ("symbol_error", 120, None),
        ("symbol_error", 121, "ERROR"),
        ("link_downed", 1, "WARNING"),
        ("link_downed", 3, "ERROR"),
        ("link_error_recovery", 11, "WARNING"),
        ("local_link_integrity_errors", 1, "ERROR"),
        ("excessive_buffer_overrun_errors", 1, "ERROR"),
        ("port_rcv_errors", 36_001, "WARNING"),
        ("out_of_sequence", 360_001, "WARNING"),
        ("rnr_nak_retry_err", 1, "WARNING"),
        ("carrier_changes", 3, "WARNING"),
    ],
)
def test_errors_within_an_hour_are_judged_by_reference(tree, node, name, added, severity):
    """Shipped references judge the errors of a port, and the finding names the port."""
    tree.plug("mlx5_1")
    port = tree.plug("mlx5_0")
    is_net = COUNTERS[name].folder == "net"
    folder = tree.root / "sys/class/net/net_mlx5_0" if is_net else port / COUNTERS[name].folder
    watched = node()
    (folder / name).write_text("5\n")
    watched.look()
    (folder / name).write_text(f"{5 + added}\n")
    found = watched.findings()
    assert {code: each.severity for code, each in found.items()} == ({f"fabric.{name}": severity} if severity else {})
    if severity:
        assert found[f"fabric.{name}"].evidence["ports"] == {"mlx5_0/1": added}


@pytest.mark.parametrize("after", [0, 2, 2**31])
def test_a_counter_that_wraps_or_is_reset_is_no_error(tree, node, after):
    """There is no false finding at any new start value."""
    port = tree.plug("mlx5_0")
    watched = node()
    (port / "hw_counters/rnr_nak_retry_err").write_text(f"{2**32 - 1}\n")
    watched.look()
    (port / "hw_counters/rnr_nak_retry_err").write_text(f"{after}\n")
    assert watched.look() == {}


def test_a_counter_at_its_limit_is_skipped(tree, node):
    """The counter has stopped, so its value says nothing; after years of use this is no fault."""
    port = tree.plug("mlx5_0")
    (port / "counters/symbol_error").write_text("65535\n")
    finding = node().findings()["fabric.counter_stopped"]
    assert (finding.severity, finding.evidence["listed"]) == ("SKIPPED", ["mlx5_0/1 symbol_error"])


@pytest.mark.parametrize(
    ("content", "code", "severity"),
    [
        (b"N/A (no PMA)\n", "fabric.unsupported", "SKIPPED"),
        (None, "fabric.unsupported", "SKIPPED"),
        (b"-3\n", "fabric.unreadable", "UNKNOWN"),
        (b"\xff\xfe\n", "fabric.unreadable", "UNKNOWN"),
        (b"garbage" * 1000, "fabric.unreadable", "UNKNOWN"),
        (b"9" * 400, "fabric.unreadable", "UNKNOWN"),
        ("folder", "fabric.unreadable", "UNKNOWN"),
    ],
    ids=["no port counters", "vanished", "negative", "not text", "garbage", "too large", "not a file"],
)
def test_a_counter_that_cannot_be_read_is_named(tree, node, content, code, severity):
    """Unsupported counters are SKIPPED, unreadable ones UNKNOWN; all others are still judged."""
    path = tree.plug("mlx5_0") / "counters/symbol_error"
    path.unlink()
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    found = node().findings()
    assert found[code].severity == severity
    assert "symbol_error" in found[code].summary
    assert len(found[code].summary) < 300


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP])
def test_what_a_driver_refuses_as_not_offered_is_skipped(tree, node, monkeypatch, number):
    """Virtual functions have the files and answer with an error."""
    path = tree.plug("mlx5_0") / "counters/symbol_error"
    whole = Path.open

    def refuse(self, *arguments, **options):
        if self == path:
            raise OSError(number, os.strerror(number))
        return whole(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert node().look() == {"fabric.unsupported": "SKIPPED"}


def test_output_stays_bounded(tree, node):
    """Two hundred ports that cannot be read make one short finding with a count."""
    ports = [tree.plug(f"mlx5_{number}") for number in range(50)]
    for port in ports:
        (port / "counters/symbol_error").write_text("what")
    finding = node().findings()["fabric.unreadable"]
    assert finding.evidence["count"] == 50
    assert len(finding.evidence["listed"]) == 20
    assert "and 30 more" in finding.summary
