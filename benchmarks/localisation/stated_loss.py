"""Whether what a sweep says about itself is true: how large a loss it would have found.

Method: in each fleet one node, or its link, falls short by a loss between 10 and 70 %. The same fleet without the fault
says how small a loss it would have found. Of the losses above that, we count how many are named, and how many sweeps
pass although the loss is larger than they say themselves.
"""

import random
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any, NamedTuple

from benchmarks.fabric.swept_fleet import FleetSetup
from benchmarks.localisation.methods import OURS
from benchmarks.localisation.network_cases import CONDITIONS, NetworkCase, a_link, a_node
from benchmarks.localisation.scenarios import Drawing, on_network
from benchmarks.localisation.scoring import play

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.strategies.adaptive import Adaptive

NOISE = 0.02
SIZES = (4, 8, 16, 64)
STATED_UNDER = ("calm", "noise 5%", "2:1", "slow uplinks", "ECMP", "a fifth declines")
FAULTS = (a_node, a_link)
LEAST, MOST = 0.1, 0.7


class Doubted(NamedTuple):
    """A fleet with a fault of a node, or of its link, whose sweep is asked what it could have found."""

    condition: str
    nodes: int
    seed: int


class Found(NamedTuple):
    """Whether the loss was larger than the healthy twin says, was named, and passed a sweep that says less."""

    beyond: bool
    named: bool
    passed_beyond: bool


def found(fleet: Doubted) -> Found:
    """What became of the fault in one fleet."""
    lots = random.Random(f"stated {fleet}")  # noqa: S311 - not a secret
    loss, breaks = lots.uniform(LEAST, MOST), FAULTS[fleet.seed % len(FAULTS)]
    condition = CONDITIONS[fleet.condition]

    def broken(nodes: int, lots: random.Random) -> FleetSetup:
        return breaks(condition(nodes), lots, share=1 - loss)

    twin = _swept(fleet, lambda nodes, _: condition(nodes))
    swept = _swept(fleet, broken)
    is_open = swept.inconclusive or swept.uncompared or swept.inconclusive_paths or swept.culprits
    own = swept.sensitivity.smallest_loss or 1.0
    return Found(
        beyond=loss > (twin.sensitivity.smallest_loss or 1.0),
        named=bool(swept.culprits),
        passed_beyond=not is_open and loss > own,
    )


def stated_losses(processes: Executor, seeds: int) -> list[dict[str, Any]]:
    """For each condition, over all sizes: the losses beyond what was stated, those named, and those that passed."""
    return [{"condition": condition, **_counts(processes, condition, seeds)} for condition in STATED_UNDER]


def _counts(processes: Executor, condition: str, seeds: int) -> dict[str, int]:
    fleets = [Doubted(condition, nodes, seed) for nodes in SIZES for seed in range(seeds)]
    results: Iterable[Found] = processes.map(found, fleets, chunksize=10)
    told = [*results]
    beyond = [one for one in told if one.beyond]
    return {
        "fleets": len(told),
        "beyond": len(beyond),
        "named": sum(one.named for one in beyond),
        "passed": sum(one.passed_beyond for one in told),
    }


def _swept(fleet: Doubted, case: NetworkCase) -> Diagnosis:
    name = f"stated loss {fleet}"
    scenario = on_network(Drawing("stated loss", fleet.nodes, name, OURS, NOISE), case)
    strategy = Adaptive(scenario.sites, seed=name)
    return strategy.diagnose(play(strategy, scenario.fabric).runs)
