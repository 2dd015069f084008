"""The allowance of a node: how many messages and bytes it may send."""

import pytest

from muster.agent_settings import AgentSettings
from muster.wire.topics import FROM_NODE, NodeTopic
from muster_coordinator.runtime.rate_limits import KIB, LIMITS, MIB, Allowances, AllowedRate, MessageLimits, Meter

FEW = MessageLimits(AllowedRate(3, 0.5), AllowedRate(100, 10))


@pytest.mark.parametrize(
    ("sent", "admitted"),
    [
        ([(0, 1), (0, 1), (0, 1), (0, 1)], [True, True, True, False]),
        ([(0, 1), (0, 1), (0, 1), (1, 1), (2, 1)], [True, True, True, False, True]),
        ([(0, 60), (0, 60), (0, 40), (5, 50)], [True, False, True, True]),
        ([(0, 101)], [False]),
        ([(0, 100), (-50, 1), (1, 1)], [True, False, True]),
    ],
)
def test_a_burst_and_then_a_rate(sent, admitted):
    """In messages and in bytes, also if the clock goes back."""
    meter = Meter(FEW)
    assert [meter.admit(size, now) for now, size in sent] == admitted


def test_every_node_has_an_allowance_for_each_kind():
    """A node that sent too many reports may still send heartbeats, and other nodes may send everything."""
    allowances = Allowances()
    burst = int(LIMITS[NodeTopic.REPORT].messages.burst)
    assert all(allowances.admit("n1", NodeTopic.REPORT, 1, 0.0) for _ in range(burst))
    assert not allowances.admit("n1", NodeTopic.REPORT, 1, 0.0)
    assert allowances.admit("n1", NodeTopic.PRESENCE, 1, 0.0)
    assert allowances.admit("n2", NodeTopic.REPORT, 1, 0.0)


def test_every_kind_has_a_limit():
    """A new kind of message needs one. The largest message fits."""
    assert set(LIMITS) == set(FROM_NODE)
    assert LIMITS[NodeTopic.REPORT].bytes.burst >= MIB


def test_an_agent_can_send_everything_after_an_outage():
    """10,000 runs of 1.5 KiB, 50 in a message, 500 at a time with half a second between, and a heartbeat each 10 s."""
    allowances, now = Allowances(), 0.0
    waiting = 10_000
    while waiting:
        for _ in range(10):
            while not allowances.admit("n1", NodeTopic.REPORT, 50 * 1536, now):
                now += 5.0  # then the agent sends it again
        waiting -= 500
        now += 0.5
        assert allowances.admit("n1", NodeTopic.PRESENCE, KIB, now)
    assert now < 300


def test_the_shortest_heartbeat_stays_within_the_allowance():
    """An hour of it, with the report of runs that were given up in every one, is admitted completely."""
    shortest_s = next(bound.ge for bound in AgentSettings.model_fields["heartbeat_s"].metadata if hasattr(bound, "ge"))
    allowances, beats = Allowances(), int(3600 / shortest_s)
    assert all(allowances.admit("n1", NodeTopic.PRESENCE, 4 * KIB, beat * shortest_s) for beat in range(beats))


def test_invented_names_are_forgotten(monkeypatch):
    """Without an ACL, a client can invent names of nodes; the number of remembered ones is bounded."""
    monkeypatch.setattr(Allowances, "MOST_METERS", 10)
    allowances = Allowances()
    for number in range(1000):
        assert allowances.admit(f"n{number}", NodeTopic.REPORT, 1, 0.0)
    assert len(allowances._meters) == 10
