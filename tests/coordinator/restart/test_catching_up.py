"""When a coordinator that starts knows all that a node has to say: not before its outbox has been drained."""

import pytest
from tests.coordinator.restart.lives import NODES, acts

from muster.model import Verdict
from muster.wire.messages import Presence
from muster_coordinator.model.events import PresenceSeen, Ticked
from muster_coordinator.quarantine.catching_up import CATCH_UP_S


@pytest.fixture
async def stale(lives):
    """A coordinator has started over a finding of n1 that was stored in observe mode."""
    lives.mode = "observe"
    await lives.begin()
    await lives.feed(lives.run("n1", Verdict.FAIL))
    lives.mode = "enforce"
    await lives.begin()
    return lives


def beat(node, *, outbox=0, kept=False):
    """A heartbeat of a node with so many runs in its outbox."""
    return PresenceSeen(Presence(id="m", sent_at=1.0, node=node, online=True, outbox=outbox), kept=kept)


def catching_up(lives):
    return lives.fleet.quarantine_view().catching_up


async def test_a_heartbeat_with_an_empty_outbox_is_complete(stale):
    """Nothing is on the way; the finding still stands, so the node goes."""
    assert catching_up(stale) == len(NODES)
    assert acts(await stale.feed(beat("n1", outbox=3))) == []
    (act,) = acts(await stale.feed(beat("n1")))
    assert (act.record.transition.node, act.record.transition.after) == ("n1", "CORDONED")
    assert catching_up(stale) == len(NODES) - 1


async def test_a_heartbeat_that_the_broker_had_kept_says_nothing_about_the_outbox(stale):
    """It may be hours old. It is still a sign of life, so the time to catch up begins."""
    assert acts(await stale.feed(beat("n1", kept=True))) == []
    stale.now += CATCH_UP_S - 2
    assert acts(await stale.feed(Ticked())) == []
    (act,) = acts(await stale.feed(Ticked()))
    assert act.record.transition.node == "n1"


async def test_a_run_from_after_the_start_is_complete(stale):
    """An agent sends its runs in order, so all older ones have arrived. Two passes keep the node in service."""
    assert acts(await stale.feed(stale.run("n1", age_s=30.0), stale.run("n1"))) == []
    assert (stale.state("n1"), catching_up(stale)) == ("IN_SERVICE", len(NODES) - 1)
    (act,) = acts(await stale.feed(stale.run("n2", Verdict.FAIL)))
    assert act.record.transition.node == "n2"


async def test_runs_from_before_the_start_are_not(stale):
    """A fault that they report may be over by the runs behind them, as here."""
    assert acts(await stale.feed(stale.run("n1", Verdict.FAIL, age_s=60.0))) == []
    assert catching_up(stale) == len(NODES)
    passes = [stale.run("n1", age_s=age_s) for age_s in (40.0, 20.0)]
    assert acts(await stale.feed(*passes, beat("n1"), Ticked())) == []
    assert stale.state("n1") == "IN_SERVICE"


async def test_what_stood_against_nobody_is_noted_without_a_word(lives):
    """A healthy fleet catches up, and nothing is decided or told."""
    await lives.begin()
    assert acts(await lives.feed(*(beat(node) for node in NODES))) == []
    assert catching_up(lives) == 0
