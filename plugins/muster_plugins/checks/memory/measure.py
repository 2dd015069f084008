"""Measures the check `memory`: all requested parts, on every device of the node."""

from pathlib import Path
from typing import NamedTuple

from muster import Context, Measurement
from muster.nouns import count
from muster_plugins.checks.memory.bandwidth import BandwidthJob, cpus_next_to
from muster_plugins.checks.memory.params import MemoryParams
from muster_plugins.checks.memory.parts import PARTS, MeasuredNode
from muster_plugins.checks.memory.pattern import PatternJob
from muster_plugins.shared.torch_device import facts, places


class _MemoryDefaults(NamedTuple):
    """Defaults for a backend."""

    size_bytes: int
    iterations: int
    limit_bytes: int | None
    rounds: int


_DEFAULTS = {"cuda": _MemoryDefaults(1 << 30, 20, None, 4), "cpu": _MemoryDefaults(1 << 20, 3, 2 << 20, 1)}


def measure(pci_root: Path, params: MemoryParams, context: Context) -> Measurement:
    """GB/s of each device in all requested parts, and the number of wrong words in the tested memory."""
    found = places(context, params.device)
    common = facts(context, found, params.device)
    if not found:
        return Measurement(facts=common)
    chosen = _DEFAULTS[found[0].backend]
    node = MeasuredNode(
        found=found,
        moving=BandwidthJob(params.size_bytes or chosen.size_bytes, params.iterations or chosen.iterations),
        testing=PatternJob(
            share=params.share,
            limit_bytes=params.limit_bytes or chosen.limit_bytes,
            patterns=params.patterns,
            rounds=params.rounds or chosen.rounds,
            seed=params.seed,
        ),
        cpus={device.index: cpus_next_to(device.pci_address, pci_root) for device in context.devices},
    )
    parts = []
    for part in dict.fromkeys(params.parts):
        context.progress(f"{part} on {count(len(found), 'device')}")
        parts.append(PARTS[part](node))
    return Measurement(
        metrics={name: value for part in parts for name, value in part.metrics.items()},
        facts=common
        | {name: value for part in parts for name, value in part.facts.items()}
        | {"failed": [failure for part in parts for failure in part.failed], "size_bytes": node.moving.size_bytes},
    )
