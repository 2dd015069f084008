"""Which runs of earlier sweeps count for a node, and how much."""

import random

import pytest
from tests.coordinator.localize.past_sweeps import DAY_S, bad, before
from tests.coordinator.localize.runs import THREE_LEAVES, fleet

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.prior import PastSweep
from muster_coordinator.localize.likelihood.chance import SLOW_BY_CHANCE
from muster_coordinator.localize.likelihood.track_record import TrackRecord
from muster_coordinator.localize.likelihood.track_records import TrackRecords
from muster_coordinator.model.sweep_records import Suspicion


def records(*sweeps: PastSweep) -> TrackRecords:
    return TrackRecords(sweeps, 100 * DAY_S, KnownFabric(THREE_LEAVES))


def record_of(node: str, *sweeps: PastSweep) -> TrackRecord:
    found = records(*sweeps).of(node)
    assert found is not None
    return found


def test_bad_runs_raise_the_ratio_and_good_runs_lower_it() -> None:
    """Whether the good ones are of the same sweep or of one in which nothing was suspected."""
    once = record_of("a4", before(1, bad("a4", "c1")))
    assert record_of("a4", before(0, bad("a4", "b1")), before(1, bad("a4", "c1"))).ratio > 10 * once.ratio
    assert record_of("a4", before(1, bad("a4", "c1", good=3))).ratio < once.ratio
    assert record_of("a4", before(0, cleared="a4", passes=3), before(1, bad("a4", "c1"))).ratio < once.ratio


def test_old_runs_count_less() -> None:
    """After two weeks, half as much, so that the ratio of equal runs is the root of what it was."""
    fresh, old = (TrackRecord("a4", record_of("a4", before(days, bad("a4", ""))).sweeps, 0.015) for days in (0, 14))
    assert [runs.weight for runs in (*fresh.sweeps, *old.sweeps)] == [1.0, 0.5]
    assert old.ratio < fresh.ratio**0.6


def test_one_partner_and_one_path_count_once() -> None:
    """A partner or path that is bad now and then makes no node recur. Partners at its own leaf count each."""
    assert record_of("a4", before(0, bad("a4", "c1")), before(1, bad("a4", "c1"))).bad == (("c1",),)
    assert record_of("a4", before(0, bad("a4", "c1")), before(1, bad("a4", "c2"))).bad == (("c1",),)
    assert len(record_of("a4", before(0, bad("a4", "a1", "a2")), before(1, bad("a4", "b1", "c1"))).bad) == 4


def test_a_convicted_partner_explains_and_a_conviction_begins_anew() -> None:
    """What was bad beside a node that was convicted since, or before the node itself was, does not count."""
    assert records(before(0, convicted="c1"), before(1, bad("a4", "c1"))).of("a4") is None
    assert records(before(0, cleared="a4"), before(1, convicted="a4"), before(2, bad("a4", "b1"))).of("a4") is None


def test_runs_alone_tell_a_bad_link_from_a_bad_node() -> None:
    """Good ones say nothing about a link, and a bad one acquits it."""
    sweeps = [before(day, bad("a4", partner, good=3, good_alone=3)) for day, partner in enumerate(("a1", "b1", "c1"))]
    assert record_of("a4", *sweeps).is_link
    assert not record_of("a4", before(0, bad("a4", "")), *sweeps).is_link
    assert not record_of("a4", before(0, bad("a4", "b1"))).is_link


def test_what_happens_to_all_is_nothing_special() -> None:
    """The more other nodes were bad, the less the bad runs of one say; its own partners do not count for that."""
    of_one = [bad("a4", "b1"), bad("b1", "a4")]
    assert record_of("a4", before(0, *of_one)).at_random == SLOW_BY_CHANCE
    others = [bad(node, "") for node in ("a1", "a2", "b2", "b3", "c1", "c2", "c3", "c4")]
    assert record_of("a4", before(0, *of_one, *others)).at_random > 2 * SLOW_BY_CHANCE


def test_many_suspects_have_a_common_cause() -> None:
    """Most nodes of a leaf, three of unknown leaves, or more than a quarter of all."""
    leaf = [bad(f"a{number}", "b1 c1") for number in (1, 2, 3)]
    assert records(before(0, *leaf)).of_bad_leaves == {"a1", "a2", "a3", "a4"}
    assert records(before(0, *leaf)).suspects == ()
    everywhere = [*leaf, *(bad(f"{name}{number}", "a4") for name in "bc" for number in (1, 2))]
    assert records(before(0, *everywhere)).of_bad_leaves == frozenset()
    assert [record.node for record in records(before(0, *leaf[:2])).suspects] == ["a1", "a2"]
    unknown = KnownFabric(fleet(64))
    three = before(0, *(bad(f"n{number}", "n60", "n61", "n62") for number in range(3)))
    assert TrackRecords((three,), 100 * DAY_S, unknown).have_common_cause
    assert records(before(0, *(bad(node, "") for node in ("a1", "b1", "b2", "c1")))).have_common_cause


@pytest.mark.parametrize("at_random", [0.015, 0.05])
def test_a_healthy_node_rarely_has_a_high_ratio(at_random: float) -> None:
    """Of 4,000 nodes that are bad by chance only, no more exceed a ratio than Markov's inequality allows."""
    lots = random.Random(1)
    ratios = [
        TrackRecord("a4", record.sweeps, at_random).ratio for _ in range(4000) if (record := _chance(lots, at_random))
    ]
    for bound in (10, 100, 1000):
        assert sum(ratio >= bound for ratio in ratios) / 4000 <= 1 / bound


def _chance(lots: random.Random, at_random: float) -> TrackRecord | None:
    """Thirty sweeps with two runs each."""
    sweeps = []
    for day in range(30):
        runs = [lots.random() < at_random for _ in range(2)]
        alone = tuple(() for was_bad in runs if was_bad)
        sweeps.append(before(day, Suspicion(node="a4", bad=alone, good=2 - len(alone), good_alone=2 - len(alone))))
    return records(*sweeps).of("a4")
