"""The page that says how large coordinator, broker and database must be, computed from measured costs of a node."""

from collections.abc import Iterator
from dataclasses import dataclass

from generator.markdown import NOTE, page, table

from muster.config import StoreSettings

LARGEST_FLEET = 10_000
"""Nodes of one coordinator: the largest fleet that was measured."""

SIZES = (1_000, 10_000, 100_000)

DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """What one node takes, as docs/explanation/benchmarks.md has it, and what a coordinator takes without nodes."""

    coordinator_core: float
    coordinator_mib: float
    coordinator_base_mib: float
    broker_core: float
    wire_mb_a_day: float
    first_day_mb: float
    later_day_mb: float
    packing_s_a_day: float


COSTS = UnitCosts(
    coordinator_core=0.44 / 10_000,
    coordinator_mib=0.04,
    coordinator_base_mib=150.0,
    broker_core=0.055 / 10_000,
    wire_mb_a_day=2.4,
    first_day_mb=0.95,
    later_day_mb=0.125,
    packing_s_a_day=1.4,
)
"""Measured on 2026-11-24 with two cores of a cloud machine: benchmarks.fleet_scale with 10,000 nodes,
benchmarks.wire with 1,000 nodes, and benchmarks.storage with SQLite."""


def scale() -> str:
    """Sizes for fleets of three sizes."""
    settings = StoreSettings()
    return page(
        [
            NOTE,
            "# How large everything must be",
            "Computed from what one node takes at the cadences as shipped, with eight GPUs "
            "([measured](../explanation/benchmarks.md#what-a-large-fleet-takes)). Cores are those of the machine on "
            "which that was measured; allow twice as much on yours until you have measured it.",
            table(_rows(settings), ("", *(f"{nodes:,} nodes" for nodes in SIZES))),
            f"The database is for `keep_full_days = {settings.keep_full_days:g}` and `keep_days = "
            f"{settings.keep_days:g}`, with SQLite; PostgreSQL takes up to twice as much on the first day. With less "
            f"room, set `store.max_gb` ({settings.max_gb:g} as shipped): the oldest detail goes earlier.",
            "## What one node takes",
            table(_unit_rows(), ("Part", "For each node")),
            "## Where one coordinator ends",
            f"One coordinator decides on one core. It was measured with up to {LARGEST_FLEET:,} nodes. Divide a larger "
            "site into several fleets, each with a `fleet` name, a broker, a coordinator and a database of its own. "
            "Divide where jobs and sweeps do not cross: a cluster, a Slurm controller or a building is a fleet. Nodes "
            "are compared with those of the same fleet, groups are formed within it, and each fleet has its own budget "
            "and its own protection against mass events.",
            "One view of all fleets comes from Prometheus, which scrapes `/metrics` of each coordinator: give each "
            "target the label `fleet`. `muster node list --url URL` asks one coordinator.",
            "To measure your machine: `python -m benchmarks.fleet_scale --nodes 1000` in a clone of the repository.",
        ]
    )


def _rows(settings: StoreSettings) -> Iterator[tuple[str, ...]]:
    costs = COSTS
    days = settings.keep_days - settings.keep_full_days
    disk_mb = costs.first_day_mb * settings.keep_full_days + costs.later_day_mb * days
    fleets = [-(-nodes // LARGEST_FLEET) for nodes in SIZES]
    each = [nodes / count for nodes, count in zip(SIZES, fleets, strict=True)]
    yield "fleets", *(str(count) for count in fleets)
    core = costs.coordinator_core + costs.packing_s_a_day / DAY_S
    yield "cores of a coordinator, with packing", *(f"{nodes * core:.2f}" for nodes in each)
    memory = (costs.coordinator_base_mib + nodes * costs.coordinator_mib for nodes in each)
    yield "memory of a coordinator", *(f"{mib:,.0f} MiB" for mib in memory)
    yield "cores of a broker", *(f"{nodes * costs.broker_core:.2f}" for nodes in each)
    yield "database of a fleet", *(f"{nodes * disk_mb / 1000:,.1f} GB" for nodes in each)
    mbit = (nodes * costs.wire_mb_a_day * 8 / DAY_S for nodes in each)
    yield "traffic of a fleet", *(f"{each_mbit:.2f} Mbit/s" for each_mbit in mbit)


def _unit_rows() -> Iterator[tuple[str, str]]:
    costs = COSTS
    yield "coordinator, processor", f"{1e6 * costs.coordinator_core:.0f} µs a second"
    yield "packing of quiet runs, processor", f"{costs.packing_s_a_day:g} s a day"
    yield "coordinator, memory", f"{1024 * costs.coordinator_mib:.0f} KiB, and {costs.coordinator_base_mib:g} MiB once"
    yield "broker (Mosquitto), processor", f"{1e6 * costs.broker_core:.0f} µs a second"
    yield "traffic, both directions", f"{costs.wire_mb_a_day:g} MB a day; 2.9 MB in fleets below 200 nodes"
    yield "database, first day", f"{costs.first_day_mb:g} MB"
    yield "database, each later day", f"{costs.later_day_mb:g} MB"
