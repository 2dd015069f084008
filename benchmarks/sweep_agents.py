"""The real agents on this host that part `formation` and part `payload` sweep."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.fleet import Fleet, install_noop_plugin, mosquitto

SETTINGS = {"plugins": {"disabled": ["nvml", "gemm", "memory", "training"]}}
"""Nothing else may import torch meanwhile, and no GPU of this host is used."""

VARIABLES = {
    "OMP_NUM_THREADS": "1",  # torchrun would set it for its ranks only
    "GLOO_SOCKET_IFNAME": "lo",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # rank 0 opens the store, as it does for an agent
}
"""What every rank has in its environment, whoever starts it."""


@asynccontextmanager
async def fleet_of(agents: int, directory: Path) -> AsyncIterator[Fleet]:
    """So many agents with the plugin `noop`, a coordinator and Mosquitto."""
    site = directory / "site"
    site.mkdir(parents=True)
    nodes = [f"node-{number}" for number in range(1, agents + 1)]
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet:
        await fleet.start_agents(*nodes, settings=SETTINGS, variables=VARIABLES | install_noop_plugin(site))
        yield fleet
