"""A simulation of a whole fleet: models of agents, a bad network and the real, pure `Fleet`, in virtual time.

Nothing here is an agent or a broker: the models speak the wire's messages as design and `messages` say, and the network
loses, repeats and reorders them as a seed decides. What the simulated coordinator stores survives its crashes. After
every step `Promises` looks whether what always has to hold still does.
"""

from collections.abc import Callable, Iterable

import pytest
from tests.simulation.world import Build, Faults, Weather, World

from muster_coordinator.sweeps.recovery import AfterRestart

Simulate = Callable[..., World]


@pytest.fixture
def simulate() -> Simulate:
    """Builds a world that has run for ten seconds: `simulate(seed, nodes=8, slow={"node-3"}, loss=0.05)`."""

    def build(
        seed: int,
        *,
        nodes: int = 8,
        devices: int = 0,
        rack: int = 0,
        noise: float = 0.2,
        slow: Iterable[str] = (),
        crashing: Iterable[str] = (),
        links: Iterable[tuple[str, str]] = (),
        after_restart: AfterRestart = AfterRestart.RESUME,
        **weather: float,
    ) -> World:
        faults = Faults(noise, frozenset(slow), frozenset(crashing), frozenset(frozenset(link) for link in links))
        world = World(seed, Build(nodes, devices, rack), faults, Weather(**weather), after_restart)
        world.run(10)
        return world

    return build
