"""How long the work for one request holds the coordinator's event loop, by size of the fleet.

Claim: with 10,000 nodes, no part of an answer that reads the fleet holds the loop for more than 10 ms, and what
`/fleet` and `/metrics` count takes no longer than with 1,000.

Method: a real agent with eight simulated GPUs is recorded (`scale_template`). Its inventory and one run of each of its
background checks are fed to the coordinator's own decisions (`Fleet`) in the names of all nodes, in this process and
without broker, database and network. Each part is then called `--calls` times; the figure is the median of the
processor time of this thread. Lists are made in slices; one slice is measured.

Limits: HTTP, the broker and the database are not in it; `node_list` measures the answers themselves. A call finds the
caches of the processor as the call before has left them.
"""

import asyncio
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Figure, Target, arguments, median_of, publish
from benchmarks.scale_agents import node_name
from benchmarks.scale_template import Template, recorded

from muster.wire.messages import Report, new_id
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, ReportSeen
from muster_coordinator.topology.selection import parse_selection
from muster_coordinator.views.node_summary import node_summary
from muster_coordinator.web.answers import LOOKED_AT, SLICE

HELD: Target = ("<=", 10.0)


def measure(template: Template, nodes: int, calls: int) -> list[Figure]:
    """The figures of one number of nodes."""
    fleet = Fleet(name="default", epoch=1)
    names = [node_name(number) for number in range(nodes)]
    began_s, now = time.process_time(), time.time()
    for name in names:
        join(fleet, template, name, now)  # at one time, so that none is silent at the end
    joined_s = time.process_time() - began_s
    gc.collect()
    gc.freeze()  # a collection in the middle would be measured as part of a call
    few, some = names[:SLICE], names[:LOOKED_AT]

    def summaries() -> None:
        for name in few:
            if (view := fleet.node(name, now)) is not None:
                node_summary(view).model_dump_json()

    parts: dict[str, Callable[[], object]] = {
        "counts of /fleet": lambda: fleet.view(now).model_dump_json(),
        "counts of /metrics": lambda: (fleet.tally(now), fleet.quarantine_view(), fleet.failing),
        f"{SLICE} nodes of /nodes": lambda: [found.model_dump_json() for n in few if (found := fleet.node(n, now))],
        f"{SLICE} nodes of /fleet/nodes": summaries,
        f"{LOOKED_AT} nodes for a selection": lambda: fleet.candidates(some),
        "the nodes by name": lambda: fleet.names,
        "the records of /quarantine/nodes": fleet.quarantine_records,
    }
    figures = [median_of(f"{what}, {nodes} nodes", "ms", held_ms(part, calls), HELD) for what, part in parts.items()]
    candidates, selection = fleet.candidates(names), parse_selection("health=FAILED")
    chosen = held_ms(lambda: selection.fitting(candidates, {}), calls)
    joining = Figure(what=f"a node joins, {nodes} nodes", unit="ms", value=1e3 * joined_s / nodes)
    return [*figures, median_of(f"a selection, in a thread, {nodes} nodes", "ms", chosen), joining]


def join(fleet: Fleet, template: Template, name: str, now: float) -> None:
    """A node says what it is made of, and reports one run of each check."""
    fleet.handle(InventorySeen(template.inventory_of(name)), now)
    runs = tuple(
        run.model_copy(update={"id": new_id(), "node": name, "seq": seq, "started_at": now})
        for seq, (run, _) in enumerate(template.checks.values(), 1)
    )
    fleet.handle(ReportSeen(Report(sent_at=now, node=name, stream="s", after=0, runs=runs)), now)


def held_ms(part: Callable[[], object], calls: int) -> list[float]:
    """The milliseconds of processor time of each call."""
    took = []
    for _ in range(calls):
        began_s = time.thread_time()
        part()
        took.append(1e3 * (time.thread_time() - began_s))
    return took


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000], help="sizes of fleets")
    parser.add_argument("--calls", type=int, default=50, help="calls of each part")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        template = asyncio.run(recorded(Path(directory)))
    publish(options, [figure for nodes in options.nodes for figure in measure(template, nodes, options.calls)])


if __name__ == "__main__":
    main()
