"""What the check `collective` measures of lossy links: how much had to be sent again over TCP."""

import contextlib
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cases import cases

from muster import Measurement
from muster.config import Config, Settings
from muster.model import Json
from muster.plugins import collect_checks, load
from muster.references import applicable, shipped
from muster_plugins.checks.collective.check import judge
from muster_plugins.checks.collective.retransmits import (
    Counters,
    Segments,
    look,
    resent_of,
    segments_between,
    sent_again,
)
from muster_plugins.shared.torch_group import RankGroup

SNMP = Path("/proc/self/net/snmp")

OTHER_PROGRAM = """
import socket, sys
connections = [socket.socket() for _ in range(20)]
for connection in connections:
    connection.setblocking(False)
    connection.connect_ex((sys.argv[1], int(sys.argv[2])))
sys.stdin.read()
"""

FACTS: Json = {"missing": [], "same_host": [], "simulated": False, "backend": "gloo", "over_tcp": True}


def group(backend: str = "gloo", local_rank: int = 0) -> RankGroup:
    """The second rank of two nodes, whose local rank this is."""
    store: Any = OneStore()
    return RankGroup(
        backend=backend,
        nodes=("a", "b"),
        local_ranks=(0, local_rank),
        hosts=("", ""),
        rank=1,
        store=store,
        timeout=timedelta(seconds=1),
    )


def resent_on_this_host():
    """The segments that the kernel has retransmitted for all programs together."""
    names, values = (line.split() for line in SNMP.read_text().splitlines() if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def test_retransmissions_of_other_programs_do_not_count(live, eventually):
    """Twenty connections of another process get no answer, as those of an exporter whose server is gone."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as stack:
        stack.enter_context(socket.create_connection(full.getsockname()))
        before, of_all = look(), resent_on_this_host()
        program = [sys.executable, "-c", OTHER_PROGRAM, *map(str, full.getsockname())]
        with subprocess.Popen(program, stdin=subprocess.PIPE):
            eventually(lambda: resent_on_this_host() - of_all >= 20, "the other program to retransmit")
            assert segments_between(before, look()) == Segments(sent=0, resent=0)


@pytest.fixture
def pair(live):
    """Makes a connection of this process with itself, from 127.0.0.1 to another address or to the same."""
    with contextlib.ExitStack() as stack:
        yield lambda to: Pair(to, stack)


def test_segments_to_other_hosts_count(pair):
    """For a connection that the first reading has, those sent since; for a new connection, all."""
    first = pair("127.0.0.2")
    first.send(100)
    before = look()
    first.send(10)
    pair("127.0.0.2").send(7)
    segments = segments_between(before, look())
    assert segments is not None
    assert 17 <= segments.sent < 80


def test_segments_within_the_host_do_not_count(pair):
    """No link carries them."""
    before = look()
    pair("127.0.0.1").send(100)
    assert segments_between(before, look()) == Segments(sent=0, resent=0)


class Pair:
    """A connection of this process with itself."""

    def __init__(self, to, stack):
        listener = stack.enter_context(socket.create_server((to, 0)))
        self.near = stack.enter_context(
            socket.create_connection(listener.getsockname(), source_address=("127.0.0.1", 0))
        )
        self.near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.far = stack.enter_context(listener.accept()[0])

    def send(self, segments):
        for _ in range(segments):
            self.near.sendall(b"x")
            self.far.recv(1)


def test_counters_may_wrap():
    """The kernel has 32 bits for them."""
    before, after = {"a": Counters(2**32 - 10, 2**32 - 1)}, {"a": Counters(90, 4)}
    assert segments_between(before, after) == Segments(sent=95, resent=5)


def test_a_connection_that_is_closed_in_between_counts_for_nothing():
    """Its counters have gone with it, and another one that took its place is new."""
    before, after = {"a": Counters(100, 50), "b": Counters(10, 0)}, {"b": Counters(30, 1), "c": Counters(5, 0)}
    assert segments_between(before, after) == Segments(sent=24, resent=1)


def test_a_resend_that_was_not_sent_makes_nothing_negative():
    """The kernel counts it before it tries."""
    assert segments_between({}, {"a": Counters(2, 5)}) == Segments(sent=0, resent=5)


@cases(
    ("ranks", "share"),
    [
        ([(2000, 0)], 0.0),
        ([(1000, 100), (1000, 0)], 0.05),
        ([(1000, 2000)], 2.0),
        ([(20, 10)], None),
        ([(250, 0), (249, 9)], None),
    ],
)
def test_what_was_sent_again_is_a_share_of_what_was_sent(ranks, share):
    """By all ranks of a node together; of too few segments no share is told, but the numbers are."""
    again = resent_of([Segments(*rank) for rank in ranks])
    assert again.metrics == ({} if share is None else {"tcp_resent_share": share})
    sent, resent = map(sum, zip(*ranks, strict=True))
    assert again.facts == {"tcp_segments": {"sent": sent, "resent": resent}}


def test_a_kernel_that_does_not_count_is_reported(monkeypatch, pair):
    """It is no fault of the network."""
    monkeypatch.setattr("muster_plugins.checks.collective.retransmits._INFO_BYTES", 104)  # that of Linux 4.1
    pair("127.0.0.2").send(1)
    again = resent_of([Segments(sent=1000, resent=0), segments_between({}, look())])
    (finding,) = judge(Measurement(metrics=again.metrics, facts=FACTS | again.facts), {})
    assert again.metrics == {}
    assert (finding.code, finding.severity) == ("collective.resent_unknown", "INFO")
    assert "does not count the segments" in finding.summary


class OneStore(dict):
    """Synthetic: a store in which this rank is alone."""

    def set(self, key, value):
        self[key] = value.encode()

    def multi_get(self, keys):
        return [self[key] for key in keys]


@cases(
    ("backend", "transports", "local_rank", "over_tcp", "counted"),
    [
        ("gloo", [], 0, True, True),
        ("gloo", [], 1, True, False),
        ("nccl", ["P2P", "NET/Socket"], 0, True, True),
        ("nccl", ["P2P", "NET/IB"], 0, False, False),
        ("nccl", ["NET/gIB"], 0, False, False),
        ("nccl", [], 0, False, False),
    ],
)
def test_segments_are_counted_where_the_ranks_send_over_tcp(backend, transports, local_rank, over_tcp, counted):
    """Once for a node, by its first rank; what others send while NCCL uses InfiniBand says nothing about it."""
    again = sent_again(Segments(sent=1000, resent=0), group(backend, local_rank), transports)
    assert again.facts["over_tcp"] is over_tcp
    assert ({"tcp_segments", "tcp_uncounted"}.isdisjoint(again.facts)) is not counted


@cases(("resent", "severity"), [(0, None), (6, None), (10, None), (11, "WARNING"), (40, "WARNING"), (41, "ERROR")])
def test_a_lossy_link_is_told(resent, severity):
    """In words and with the numbers, by the reference that comes with muster."""
    again = resent_of([Segments(2000, resent)])
    facts = FACTS | again.facts
    findings = judge(Measurement(metrics=again.metrics, facts=facts), applicable(shipped(), "collective", facts))
    assert [(each.code, each.severity) for each in findings] == ([("collective.lossy", severity)] if severity else [])
    for finding in findings:
        assert f"{resent} of 2000 TCP segments had to be sent again" in finding.summary
        assert (finding.evidence["sent"], finding.evidence["resent"]) == (2000, resent)


def test_only_the_check_that_measures_it_says_that_it_is_judged():
    """`nccl_tests` shares the judgement but does not list the metric; the fleet compares it for neither check."""
    checks = collect_checks(load(Config(Settings())))
    judging = {name for name, check in checks.items() if "tcp_resent_share" in check.judged}
    assert judging == {"collective"}
    assert "tcp_resent_share" not in checks["collective"].compared


def test_the_first_rank_of_each_node_counts_in_a_run(torch_child):
    """All ranks report that they send over TCP, and one rank of each node counts."""
    params = {"size_bytes": 1 << 12, "iterations": 2}
    answers = torch_child.ask("collective", {"node": "a"}, {"node": "b"}, params=params, ranks=[2, 2])
    assert [answer["facts"]["over_tcp"] for answer in answers] == [True] * 4
    assert ["tcp_segments" in answer["facts"] for answer in answers] == [True, False, True, False]
