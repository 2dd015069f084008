"""When a coordinator that starts knows all that a node has to say: not before its outbox has been drained."""

from functools import partial

import pytest
from tests.coordinator.restart.lives import NODES, acts

from muster.model import Verdict
from muster.wire.messages import Presence
from muster_coordinator.model.events import LinkRestored, PresenceSeen, Ticked
from muster_coordinator.quarantine.backlogs import CATCH_UP_S


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


def reports(lives, node, *ages_s, verdict=Verdict.PASS):
    """Runs that waited in the outbox of a node, the oldest first."""
    return [lives.run(node, verdict, age_s=age_s) for age_s in ages_s]


async def test_a_node_that_still_delivers_waits_longer(stale):
    """A full outbox takes minutes, as the coordinator takes 20 runs a second. The passes behind them end the fault."""
    late = partial(reports, stale, "n1", verdict=Verdict.FAIL)
    for behind_s in range(3_000, 1_500, -100):
        stale.now += CATCH_UP_S / 2
        assert acts(await stale.feed(beat("n1", outbox=9_000), *late(behind_s), Ticked())) == []
        assert "have not all arrived" in stale.fleet.case("n1").held_because
    assert acts(await stale.feed(*reports(stale, "n1", 1_400.0, 1_300.0, 0.0), Ticked())) == []
    assert (stale.state("n1"), stale.fleet.case("n1").requirement) == ("IN_SERVICE", None)


async def test_a_node_that_does_not_come_nearer_to_now_waits_no_longer(stale):
    """Its runs stay as old as they are: it may deliver for ever."""
    told = []
    for _ in range(4):
        stale.now += CATCH_UP_S / 2
        late = reports(stale, "n1", 600.0, verdict=Verdict.FAIL)
        told += acts(await stale.feed(beat("n1", outbox=9_000), *late, Ticked()))
    assert [act.record.transition.node for act in told] == ["n1"]


async def silence(lives):
    """All nodes fall silent: their agents do not reach the broker."""
    lives.now += 60.0
    await lives.feed(Ticked())


async def test_a_node_that_is_heard_again_delivers_first_what_it_kept(lives):
    """Its agent lost the broker for an hour. XID 79 came first in that time, and then the node was mended."""
    await silence(lives)
    lives.now += 3_600.0
    assert acts(await lives.feed(beat("n1", outbox=3), *reports(lives, "n1", 3_000.0, verdict=Verdict.FAIL))) == []
    assert catching_up(lives) == 1
    assert acts(await lives.feed(*reports(lives, "n1", 2_000.0, 1_000.0), beat("n1"), Ticked())) == []
    assert (lives.state("n1"), catching_up(lives)) == ("IN_SERVICE", 0)


async def test_a_node_that_was_never_silent_may_deliver_old_runs_too(lives):
    """Its heartbeats came, and the coordinator took no reports of it: it was over its quota."""
    assert acts(await lives.feed(*reports(lives, "n1", 3_000.0, verdict=Verdict.FAIL))) == []
    assert (catching_up(lives), "have not all arrived" in lives.fleet.case("n1").held_because) == (1, True)
    (act,) = acts(await lives.feed(beat("n1")))
    assert act.record.transition.node == "n1"


async def test_a_run_that_took_long_is_not_late(lives):
    """It began long ago, but it is reported as soon as it has ended."""
    seen = lives.run("n1", Verdict.FAIL, age_s=3_000.0, duration_s=2_990.0)
    (act,) = acts(await lives.feed(seen))
    assert act.record.transition.node == "n1"


async def test_after_the_broker_was_away_every_node_may_have_more_to_say(lives):
    """n1 would be the first to be cordoned as soon as the others are back, and its agent is not back yet."""
    lives.mode = "observe"
    await lives.begin()
    await lives.feed(lives.run("n1", Verdict.FAIL), *(beat(node) for node in NODES))
    lives.mode = "enforce"
    await lives.begin()
    await lives.feed(*(beat(node) for node in NODES if node != "n1"))
    await silence(lives)
    lives.now += 600.0
    assert acts(await lives.feed(LinkRestored(), *(beat(node) for node in NODES if node != "n1"), Ticked())) == []
    assert catching_up(lives) == 1
    assert "have not all arrived" in lives.fleet.case("n1").held_because
    lives.now += CATCH_UP_S - 2
    assert acts(await lives.feed(*reports(lives, "n1", 500.0, 400.0), beat("n1"), Ticked())) == []
    assert (lives.state("n1"), catching_up(lives)) == ("IN_SERVICE", 0)


async def test_after_the_broker_was_away_a_silent_node_is_waited_for_so_long(lives):
    """As after a start: it may be gone for good."""
    await silence(lives)
    await lives.feed(LinkRestored(), beat("n1", outbox=1), Ticked())
    assert catching_up(lives) == len(NODES)
    lives.now += CATCH_UP_S
    await lives.feed(Ticked())
    assert catching_up(lives) == 0


async def test_a_new_fault_behind_late_runs_counts_at_once(lives):
    """An overloaded coordinator takes the runs of every node late, and a new fault with all that waited before it."""
    late = [lives.run("n1", age_s=age_s) for age_s in (75.0, 70.0)]
    fault = lives.run("n1", Verdict.FAIL, age_s=5.0)
    (act,) = acts(await lives.feed(*late, fault))
    assert (act.record.transition.node, act.record.transition.after) == ("n1", "CORDONED")
