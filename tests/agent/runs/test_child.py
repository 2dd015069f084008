"""What goes on in a child, as far as it can be looked at without one."""

import json
import socket

import pytest

from muster.model import Action, Finding, Measurement, Severity
from muster_agent.decide import findings
from muster_agent.decide.orders import ChildExit, RankPlace
from muster_agent.runs import child

PLACE = RankPlace(rank=3, local_rank=1, local_world_size=2, world_size=4, master_addr="127.0.0.1", master_port=4242)


@pytest.fixture
def line():
    """A child's end of the control socket, the daemon's end, and what the daemon hears."""
    daemons, childs = socket.socketpair()
    with daemons, childs, daemons.makefile("rb") as heard:
        yield child.ControlChannel(childs), daemons, heard


def test_numbers_that_json_lacks_become_null(line):
    """NaN and infinity in metrics and facts reach the daemon as null."""
    spoken, _, heard = line
    measurement = Measurement(metrics={"a": float("inf"), "b": [1.0, float("nan")]}, facts={"c": float("-inf")})
    spoken.say({"result": measurement})
    assert json.loads(heard.readline())["result"] == {"metrics": {"a": None, "b": [1.0, None]}, "facts": {"c": None}}


def test_a_closed_line_is_heard_as_nothing(line):
    """When the daemon is gone, there is nothing to hear, and no error."""
    spoken, daemon, _ = line
    daemon.sendall(b'{"go": true}\n')
    assert spoken.hear() == {"go": True}
    daemon.shutdown(socket.SHUT_RDWR)
    assert spoken.hear() == {}


def test_the_environment_is_what_torch_expects(monkeypatch):
    """The standard variables are set as strings, and the interface of the master's address is named for gloo."""
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    assert child.environment(PLACE) == {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "4242",
        "GLOO_SOCKET_IFNAME": "lo",
    }


def test_an_interface_that_the_operator_chose_stays(monkeypatch):
    """GLOO_SOCKET_IFNAME from the environment goes before what the route says."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "rail0")
    assert child.environment(PLACE)["GLOO_SOCKET_IFNAME"] == "rail0"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "256.0.0.1", "::1"])
def test_no_interface_is_named_where_none_is_known(host):
    """A host that cannot be resolved or has no IPv4 address gives no interface, and no error."""
    assert child.interface_towards(host) is None


ENDINGS = [
    (ChildExit(status=0), False, "run.exited", "code 0"),
    (ChildExit(status=3 << 8), False, "run.exited", "code 3"),
    (ChildExit(status=9), False, "run.killed", "SIGKILL"),
    (ChildExit(status=9), True, "run.out_of_memory", "memory"),
    (ChildExit(status=6 | 0x80), False, "run.killed", "SIGABRT"),
    (ChildExit(status=6), True, "run.killed", "SIGABRT"),
    (ChildExit(status=40), False, "run.killed", "signal 40"),
    (ChildExit(error="cannot fork"), False, "run.exited", "cannot fork"),
]


@pytest.mark.parametrize(("ending", "memory_ran_out", "code", "text"), ENDINGS)
def test_how_a_child_ended_is_told(ending, memory_ran_out, code, text):
    """Every way to end without a result has its finding; none of them blames the hardware."""
    finding = findings.ended_without_result(ending, memory_ran_out=memory_ran_out)
    assert (finding.code, finding.severity, finding.action) == (code, Severity.UNKNOWN, Action.NONE)
    assert text in finding.summary


THROWN = """\
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 Rank 1] Watchdog caught collective operation timeout
Exception raised from checkTimeout (most recent call first):
frame #0: c10::Error::Error
"""


@pytest.mark.parametrize(
    ("output", "code", "text"),
    [
        (THROWN, "run.raised", "c10::DistBackendError: [PG ID 0 Rank 1] Watchdog caught"),
        ("terminate called after throwing an instance of 'int'\n", "run.raised", "int: thrown in a thread"),
        ("terminate called recursively\n", "run.raised", "a library terminated the process"),
        ("terminate called after throwing an instance of 'terminate called recursively\n", "run.raised", "a library"),
        ("terminate called without an active exception\n", "run.raised", "a library terminated the process"),
        ("free(): invalid pointer\n", "run.killed", "SIGABRT"),
        ("a check prints: terminate called after throwing an instance of 'x'\n", "run.killed", "SIGABRT"),
    ],
)
def test_an_exception_in_a_thread_of_a_library_is_run_raised(output, code, text):
    """A rank of gloo or NCCL ends like this when a peer leaves or sends garbage, which is no crash of this node."""
    finding = findings.ended_without_result(ChildExit(status=6), memory_ran_out=False, output=output)
    assert (finding.code, finding.severity) == (code, Severity.UNKNOWN)
    assert text in finding.summary
    assert finding.evidence["signal"] == "SIGABRT"


def test_evidence_of_an_exception_becomes_evidence_of_the_finding():
    """A check can name the peer that caused it; evidence that is not a mapping of JSON is left out."""

    class WithEvidence(Exception):
        def __init__(self, evidence: object) -> None:
            self.evidence = evidence

    assert findings.raised(WithEvidence({"peer_rank": 0})).evidence["peer_rank"] == 0
    for odd in ({"peer": object()}, {1: 2}, 7, None):
        assert [*findings.raised(WithEvidence(odd)).evidence] == ["traceback"]


def test_what_remains_after_the_end():
    """Leftovers are worth knowing, the unkillable makes the run UNKNOWN, and usually there is neither."""
    assert findings.after_the_end(ChildExit(status=0)) == []
    left, stuck = findings.after_the_end(ChildExit(status=0, left={7: "sleep"}, stuck=(8, 9)))
    assert (left.code, left.severity, left.evidence) == ("run.leftovers", Severity.INFO, {"names": ["sleep"]})
    assert (stuck.code, stuck.severity, stuck.evidence) == ("run.unkillable", Severity.UNKNOWN, {"pids": [8, 9]})


def test_long_tracebacks_are_cut():
    """The end of a traceback is kept, as that is where the cause stands."""
    finding = findings.raised(RuntimeError("x" * 10_000 + "the end"))
    assert len(str(finding.evidence["traceback"])) <= 4096
    assert str(finding.evidence["traceback"]).endswith("the end\n")
    assert len(finding.summary) <= 500


def test_the_verdict_of_a_finding_about_the_run_is_never_fail():
    """Only evidence about the hardware is FAIL: what becomes of a run is UNKNOWN or SKIPPED."""
    about_runs: list[Finding] = [
        findings.raised(ValueError()),
        findings.raised(MemoryError()),
        findings.timeout(1.0),
        findings.garbage(ValueError("x")),
        findings.hung("x", {}),
        findings.unprepared("p", "x"),
    ]
    assert {finding.severity for finding in about_runs} == {Severity.UNKNOWN}
    assert {findings.skipped("x").severity, findings.preempted("x").severity} == {Severity.SKIPPED}
