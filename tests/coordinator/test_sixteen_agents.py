"""Sixteen real agents on one host, each with processes of its own, are swept in every way."""

from benchmarks.fleet import Fleet, install_noop_plugin

from muster_coordinator.model.sweep_records import Ending

NODES = tuple(f"node-{number:02}" for number in range(1, 17))
QUIET = {"plugins": {"disabled": ["nvml", "gemm", "memory", "training"]}}
"""Nothing imports torch in the background meanwhile."""


async def test_sixteen_agents_are_swept_in_every_way(tmp_path, mosquitto):
    """In pairs, all together, or as it tells most: every node is cleared, and every group is on record as finished."""
    async with Fleet(tmp_path, mosquitto.url) as fleet:
        await fleet.start_agents(*NODES, settings=QUIET, variables=install_noop_plugin(tmp_path))
        for strategy, sizes in {"pairs": [2] * 8, "whole": [16], "adaptive": [2] * 8}.items():
            sweep = await fleet.swept(check="noop-group", strategy=strategy)
            groups = [group for stage in sweep.rounds for group in stage.groups]
            assert set(sweep.cleared_nodes) == set(NODES)
            assert [len(group.members) for group in groups] == sizes
            assert sorted(node for group in groups for node in group.members) == list(NODES)
            assert {group.ending for group in groups} == {Ending.FINISHED}
            ranks = [place.first_rank for group in groups for place in group.places]
            assert ranks == [rank for size in sizes for rank in range(size)]
