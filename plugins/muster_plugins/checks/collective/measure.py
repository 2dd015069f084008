"""Measures the check `collective`: one rank of the group, together with the others."""

import os
from dataclasses import replace
from functools import partial

from muster import Context, Measurement, Skip
from muster.model import Json
from muster_plugins.checks.collective import retransmits
from muster_plugins.checks.collective.check import CollectiveSettings, GroupParams
from muster_plugins.checks.collective.direction import send_one_way
from muster_plugins.checks.collective.measurement import GroupResults, exchange_results, run_sizes
from muster_plugins.checks.collective.operations import OPERATIONS
from muster_plugins.checks.collective.peers import everyone
from muster_plugins.checks.collective.rails import rails_of, run_in_turn
from muster_plugins.shared.collectives import table
from muster_plugins.shared.collectives.params import ONE_RANK
from muster_plugins.shared.collectives.table import SizeRow
from muster_plugins.shared.nccl import transport
from muster_plugins.shared.nccl.environment import environment_for, profiles, shown
from muster_plugins.shared.torch_device import Place, facts, free_bytes, place_of_rank, places_in_group, working_on
from muster_plugins.shared.torch_group import RankGroup, joined
from muster_plugins.shared.unmeasured import Unmeasured

_DEFAULT_BYTES = {"cuda": 1 << 30, "cpu": 16 << 20}


def measure(settings: CollectiveSettings, params: GroupParams, context: Context) -> Measurement:
    """Bandwidth and latency as this rank saw them, as medians of its rounds; no metrics if it cannot measure them."""
    import torch  # noqa: F401, PLC0415  slow, and so before the others start to wait for us

    found = places_in_group(context, params.device)
    known = facts(context, found, params.device) | {"machine_type": context.machine_type}
    if known["missing"]:  # otherwise the group would measure the wrong hardware
        return Measurement(facts=known)
    # Reading the memory of the other devices would itself take some of it.
    own = place_of_rank(found, int(os.environ.get("LOCAL_RANK", "0")))
    try:
        _must_fit(params, own, sharing=len(found) if own.backend == "cpu" else 1)
    except Unmeasured as reason:
        return reason.measurement(known)
    meeting = context.rendezvous()
    if meeting.world_size == 1:
        raise Skip(ONE_RANK)
    os.environ.update(_environment(settings, params, context))
    place = place_of_rank(found, meeting.local_rank)
    with working_on(place), joined(context, meeting, place, params.timeout_s) as group:
        try:
            return _measure_group(settings, params, context, place, group, known=known)
        except Unmeasured as reason:  # all ranks get the same error, and leave when the last one has joined
            group.wait_for(range(len(group.nodes)), "unmeasured", group.timeout.total_seconds())
            return reason.measurement(known)


def _measure_group(
    settings: CollectiveSettings, params: GroupParams, context: Context, place: Place, group: RankGroup, *, known: Json
) -> Measurement:
    """The results of this rank, with what all ranks exchanged; `known` are facts about this node."""
    if group.backend == "gloo":
        place = replace(place, torch_name="cpu")
    before = retransmits.look()
    rails = rails_of(group.nodes, group.local_ranks) if params.by_rail else []
    sizes = params.sizes(_DEFAULT_BYTES[place.backend])
    seen = run_sizes(params, sizes, place, context.progress, everyone(group.rank, len(group.nodes)))
    largest = partial(run_sizes, params, sizes[-1:], place, context.progress)
    apart = run_in_turn(rails, group, context.timeout_s, largest)
    sent = send_one_way(group, sizes[-1], place)
    seen.add_wrong(apart.wrong + sent.wrong)
    segments = retransmits.segments_between(before, retransmits.look())
    transports = transport.connections(context.scratch)
    results = exchange_results(group, seen, transports)  # after which a rank may leave
    again = retransmits.sent_again(segments, group, results.transports)
    known |= group.facts(place) | table.facts(seen.rows) | again.facts
    known |= {"collective": params.collective, "same_host": [*group.nodes_that_share_a_host()]}
    known |= transport.facts(_expected(settings, params), transports, results.transports)
    known |= transport.explanation(known, context.scratch)
    known |= {
        "peers": [*group.others],
        "arrived_last": list(results.latest(group.nodes)),
        "environment": dict(shown(os.environ)),
    }
    peak = settings.peak_gbps or table.expected_peak(known)
    if group.rank == 0:
        known |= _outputs(params, seen.rows, results, peak)
    metrics = table.metrics(seen.rows, len(group.nodes), peak) | seen.times()
    return Measurement(metrics=metrics | apart.metrics | sent.metrics | again.metrics, facts=known)


def _must_fit(params: GroupParams, place: Place, sharing: int) -> None:
    """Raises Unmeasured with the size that would fit, before the others wait; `sharing` ranks use the same memory."""
    size = params.sizes(_DEFAULT_BYTES[place.backend])[-1]
    fits = OPERATIONS[params.collective].most_bytes(free_bytes(place) // sharing, place.backend)
    if size > fits:
        raise Unmeasured(
            "too_large",
            f"a message of {size} bytes does not fit into {place.model}: at most {fits} bytes do",
            size_bytes=size,
            fits_bytes=fits,
            device=place.index,
        )


def _environment(settings: CollectiveSettings, params: GroupParams, context: Context) -> dict[str, str]:
    interface = os.environ.get("GLOO_SOCKET_IFNAME")  # The agent sets the network interface that leads to rank 0.
    values = environment_for(params.profile or settings.profile, settings, interface)
    return values | transport.logging_to(context.scratch)


def _expected(settings: CollectiveSettings, params: GroupParams) -> str | None:
    return params.expect_transport or profiles()[params.profile or settings.profile].transport


def _outputs(params: GroupParams, rows: list[SizeRow], results: GroupResults, peak: float | None) -> Json:
    """The results in both formats of nccl-tests. Wrong elements are those of all ranks, times are this rank's."""
    rows = [replace(row, wrong=wrong) for row, wrong in zip(rows, results.wrong, strict=True)]
    config: Json = {
        "nthreads": 1,
        "ngpus": 1,
        "minimum_bytes": rows[0].size_bytes,
        "maximum_bytes": rows[-1].size_bytes,
        "step_factor": params.factor,
        "warmup_iters": params.warmup,
        "iterations": params.iterations,
        "aggregated_iterations": 1,
        "validation": 1,
        "graph": 0,
        "blocking_collectives": "false",
        "parallel_init": "false",
    }
    return {
        "table": table.text_table(rows, peak),
        "report": table.report(rows, config),
        "curves": table.curves(rows),
    }
