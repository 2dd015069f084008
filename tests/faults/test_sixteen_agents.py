"""Sixteen real agents on one host, each with processes of its own, are swept in every way."""

import pytest

from muster_coordinator.model.sweep_records import Ending, SweepRecord


@pytest.mark.parametrize(("strategy", "sizes"), [("pairs", [2] * 8), ("whole", [16]), ("adaptive", [2] * 8)])
def test_sixteen_agents_are_swept(sixteen, book, strategy, sizes):
    """In pairs, all together, or as it tells most: every node is cleared, and every group is on record as finished."""
    asked = sixteen.start_sweep(*sixteen.agents, strategy=strategy, book=str(book))
    sweep = SweepRecord.model_validate(sixteen.ended_sweep(asked))
    groups = [group for stage in sweep.rounds for group in stage.groups]
    assert set(sweep.cleared_nodes) == set(sixteen.agents)
    assert [len(group.members) for group in groups] == sizes
    assert sorted(node for group in groups for node in group.members) == sorted(sixteen.agents)
    assert {group.ending for group in groups} == {Ending.FINISHED}
    ranks = [place.first_rank for group in groups for place in group.places]
    assert ranks == [rank for size in sizes for rank in range(size)]
