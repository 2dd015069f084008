"""What the check `collective` measures of lossy links: how much had to be sent again over TCP."""

from typing import Any

import pytest
from tests.cases import cases

from muster import Measurement
from muster.config import Config, Settings
from muster.model import Json
from muster.plugins import collect_checks, load
from muster.references import applicable, shipped
from muster_plugins.checks.collective.check import judge
from muster_plugins.checks.collective.retransmits import Segments, look, resent_between, segments, sent_again
from muster_plugins.shared.torch_group import RankGroup

SNMP = """\
Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers
Ip: 2 64 25530506 0 0 0 0 0 25530506
IcmpMsg: InType3
IcmpMsg: 3
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs \
RetransSegs InErrs OutRsts InCsumErrors
Tcp: 1 200 120000 -1 244927 230440 14357 12981 0 25524700 25504386 19287 0 23521 0
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 5828 0 0 5831 0 0 0 0 0
"""
"""What a kernel told, without the end of its first two lines and the last two."""

FACTS: Json = {"missing": [], "same_host": [], "simulated": False, "backend": "gloo", "over_tcp": True}


def counters(sent: object, resent: object) -> str:
    """Synthetic: what the kernel tells with these counters."""
    return f"Tcp: RtoMin MaxConn OutSegs RetransSegs\nTcp: 200 -1 {sent} {resent}\n"


def group(backend: str = "gloo", local_rank: int = 0) -> RankGroup:
    """The second rank of two nodes, whose local rank this is."""
    store: Any = None
    return RankGroup(
        backend=backend,
        nodes=("a", "b"),
        local_ranks=(0, local_rank),
        hosts=("", ""),
        rank=1,
        store=store,
        timeout=store,
    )


def test_the_counters_are_found_among_those_of_other_protocols():
    """The counters are found by their names, in any order."""
    assert segments(SNMP) == Segments(sent=25504386, resent=19287)
    assert segments("Tcp: RetransSegs OutSegs\nTcp: 2 100\n") == Segments(sent=100, resent=2)


def test_this_machine_tells_its_counters():
    """The kernel's own file of this host can be read."""
    assert segments(look()).sent >= 0


@cases(
    "text",
    [
        "",
        "Tcp: OutSegs RetransSegs\n",
        "Tcp: OutSegs RetransSegs\nTcp: 100\n",
        "Tcp: OutSegs RetransSegs\nTcp: 100 2\nTcp: 100 2\n",
        "Tcp: OutSegs\nTcp: 100\n",
        "Udp: OutSegs RetransSegs\nUdp: 100 2\n",
        "Tcp6: OutSegs RetransSegs\nTcp6: 100 2\n",
        counters(-1, 2),
        counters("1e9", 2),
        counters(100, "\N{REPLACEMENT CHARACTER}"),
        counters("9" * 5000, 2),
    ],
)
def test_a_text_without_the_counters_is_refused(text):
    """A missing, truncated or invalid counter is an error."""
    with pytest.raises(ValueError, match=r"/proc/self/net/snmp|integer"):
        segments(text)


@cases(
    ("before", "after", "share"),
    [
        ((1000, 7), (3000, 7), 0.0),
        ((1000, 7), (3000, 107), 0.05),
        ((0, 0), (1000, 2000), 2.0),
        ((1000, 7), (1020, 17), None),
        ((1000, 7), (1000, 7), None),
    ],
)
def test_what_was_sent_again_is_a_share_of_what_was_sent(before, after, share):
    """The share is of the segments between two readings; with too few segments, only the numbers are reported."""
    again = resent_between(counters(*before), counters(*after))
    assert again.metrics == ({} if share is None else {"tcp_resent_share": share})
    assert again.facts == {"tcp_segments": {"sent": after[0] - before[0], "resent": after[1] - before[1]}}


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ((2**32 - 10, 7), (5000, 8), "went back"),
        ((1000, 7), (5000, 6), "went back"),
        ((1000, "?"), (5000, 6), "gives ? as RetransSegs"),
        ((1000, 7), ("", ""), "does not give a value"),
    ],
)
def test_counters_that_wrap_or_cannot_be_read_tell_nothing(before, after, reason):
    """The finding gives the reason, which says nothing about the network."""
    again = resent_between(counters(*before), counters(*after))
    (finding,) = judge(Measurement(metrics=again.metrics, facts=FACTS | again.facts), {})
    assert again.metrics == {}
    assert (finding.code, finding.severity) == ("collective.resent_unknown", "INFO")
    assert reason in finding.summary


def test_a_kernel_that_has_no_counters_tells_nothing(monkeypatch, tmp_path):
    """The file may be missing."""
    monkeypatch.setattr("muster_plugins.checks.collective.retransmits._COUNTERS", tmp_path / "snmp")
    assert look() == ""
    assert sent_again(look(), group(), ()).metrics == {}


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
    """The first rank of each node counts; while NCCL uses InfiniBand, segments of others say nothing about it."""
    again = sent_again(look(), group(backend, local_rank), transports)
    assert again.facts["over_tcp"] is over_tcp
    assert ("tcp_segments" in again.facts) is counted


@cases(("resent", "severity"), [(0, None), (6, None), (10, None), (11, "WARNING"), (40, "WARNING"), (41, "ERROR")])
def test_a_lossy_link_is_told(resent, severity):
    """The finding has the numbers, and the shipped reference judges the share."""
    again = resent_between(counters(0, 0), counters(2000, resent))
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
    assert answers[0]["facts"]["tcp_segments"]["sent"] > 0
