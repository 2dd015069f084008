"""One rank of the collective that a sweep runs, without an agent: what torchrun starts in the benchmark.

Everything but the parameters is in torch's environment variables. A rank 0 that inherits a socket which listens on
MASTER_PORT finds its descriptor in LISTEN_FD. MEETING_PORT takes the place of MASTER_PORT.
"""

import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from muster import Device, Rendezvous
from muster_plugins.checks.collective.check import CollectiveSettings, GroupParams
from muster_plugins.checks.collective.measure import measure


@dataclass(frozen=True)
class DirectContext:
    """The surroundings of a rank that torch's environment variables describe; nobody waits for it or listens to it."""

    node: str
    devices: tuple[Device, ...] = ()
    expected_gpus: int | None = None
    machine_type: str | None = None
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    timeout_s: float = 120.0

    def progress(self, text: str) -> None:
        """There is nobody to tell."""

    def rendezvous(self) -> Rendezvous:
        """The ranks wait for each other at rank 0's store only."""
        return Rendezvous(
            rank=int(os.environ["RANK"]),
            local_rank=0,  # each rank stands for a node of its own
            world_size=int(os.environ["WORLD_SIZE"]),
            master_addr=os.environ["MASTER_ADDR"],
            master_port=int(os.environ.get("MEETING_PORT", os.environ["MASTER_PORT"])),
            listen_fd=int(os.environ["LISTEN_FD"]) if "LISTEN_FD" in os.environ else None,
        )


def main() -> None:
    """Measures one rank; fails when a sum is wrong."""
    params = GroupParams.model_validate(json.loads(sys.argv[1]))
    measurement = measure(CollectiveSettings(), params, DirectContext(node=f"node-{os.environ['RANK']}"))
    if measurement.metrics["wrong_elements"]:
        sys.exit("the sums are wrong")


if __name__ == "__main__":
    main()
