"""The metrics of nodes and their GPUs.

No label has more values than Prometheus can keep: nodes are named only while something is wrong with them, and no more
than a tally names. Of finding codes, which agents choose, only the most frequent are shown.
"""

from collections.abc import Iterator

from prometheus_client.core import Metric

from muster_coordinator.evidence.node_tally import GpuLoss, NamedNode, Tally
from muster_coordinator.normal.baselines import COMPARED
from muster_coordinator.runtime.metric_families import gauge, labelled

DAY_S = 86_400.0

UNTESTED_DAYS = (1, 7, 30)
"""After so many days without a sweep a node counts as not tested. Daily, weekly and monthly sweeps are usual."""

MOST_CODES = 100
"""Maximum number of finding codes that are shown, and of numbers of errors. A fleet has few at a time."""


def node_metrics(counted: Tally, now: float) -> Iterator[Metric]:
    """The metrics of all nodes, as they were counted at `now`."""
    yield from _states(counted)
    yield from _gpus(counted)
    yield from _findings(counted)
    what = "Nodes that no sweep has cleared or convicted for this number of days, and that joined before"
    days = (((str(days),), counted.not_tested_since(now - days * DAY_S)) for days in UNTESTED_DAYS)
    yield labelled("muster_nodes_untested", what, ("days",), days)
    yield gauge("muster_runs_unacknowledged", "Runs that wait at agents to be stored", counted.waiting_runs)


def _states(counted: Tally) -> Iterator[Metric]:
    what = "Nodes by health (UNKNOWN at best if lost) and service state"
    yield labelled("muster_nodes", what, ("health", "service"), counted.both.items())
    what = "Nodes by place, health and service state, without those that have left"
    yield labelled("muster_rack_nodes", what, ("block", "rack", "health", "service"), counted.places.items())
    what = "1 for each node that is not healthy or not in service: the worst 200, with health and service state"
    labels = ("node", "health", "service", "lost", "block", "rack")
    yield labelled("muster_bad_node", what, labels, ((_named(node), 1) for node in counted.named))
    yield gauge("muster_bad_nodes_unnamed", "Such nodes beyond these 200", counted.unnamed)
    what = "Nodes whose heartbeat has stopped, without those that have left"
    yield gauge("muster_nodes_lost", what, len(counted.lost))


def _named(node: NamedNode) -> tuple[str, ...]:
    kind = node.kind
    return node.name, kind.shown_health, kind.service, str(not kind.is_online).lower(), kind.block, kind.rack


def _gpus(counted: Tally) -> Iterator[Metric]:
    yield gauge("muster_gpus", "GPUs of all nodes that have not left", counted.gpus)
    what = "GPUs that cannot be used: their node is drained, or in service and failed, or in service and lost"
    yield labelled("muster_gpus_unavailable", what, ("reason",), (((why,), counted.gpus_lost[why]) for why in GpuLoss))


def _findings(counted: Tally) -> Iterator[Metric]:
    codes = counted.codes.most_common(MOST_CODES)
    what = "Nodes against which a finding with this code stands: the 100 most frequent codes"
    yield labelled("muster_finding_nodes", what, ("code",), (((code,), nodes) for code, nodes in codes))
    numbers = counted.numbers.most_common(MOST_CODES)
    for name, what in (("xid", "XID"), ("sxid", "SXID of NVSwitch")):
        found = (((str(number),), nodes) for (kind, number), nodes in numbers if kind == name)
        yield labelled(f"muster_{name}_nodes", f"Nodes against which an {what} stands, by its number", (name,), found)
    what = "Findings of comparisons that stand against nodes, by code"
    yield labelled("muster_compared", what, ("code",), (((code,), counted.compared[code]) for code in COMPARED))
