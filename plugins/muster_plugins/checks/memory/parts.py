"""The parts of the check `memory`. Each measures one thing on the devices of a node."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from muster.model import Json, Metric
from muster_plugins.checks.memory import pairs, peer_judgement
from muster_plugins.checks.memory.bandwidth import BandwidthJob, Transfers, bandwidth, transfers
from muster_plugins.checks.memory.params import MemoryPart
from muster_plugins.checks.memory.pattern import PatternJob, verify
from muster_plugins.shared.torch_device import CPU, Place
from muster_plugins.shared.torch_failures import Failure, attempt_each, each_number, failure_facts

if TYPE_CHECKING:
    import torch


class MeasuredNode(NamedTuple):
    """The devices to measure and the parameters. `cpus` holds by device index the CPUs next to a device, if known."""

    found: list[Place]
    moving: BandwidthJob
    testing: PatternJob
    cpus: dict[int | None, frozenset[int]]


class Measured(NamedTuple):
    """The result of one part."""

    metrics: dict[str, Metric]
    failed: list[JsonValue]
    facts: Json


def _bandwidth(node: MeasuredNode) -> Measured:
    results = attempt_each(node.found, partial(bandwidth, job=node.moving))
    metrics: dict[str, Metric] = {
        "copy_gbps": each_number(results, lambda result: result.copy),
        "triad_gbps": each_number(results, lambda result: result.triad),
    }
    return Measured(metrics, failure_facts(node.found, results), {})


def _pattern(node: MeasuredNode) -> Measured:
    results = attempt_each(node.found, partial(verify, job=node.testing))
    metrics: dict[str, Metric] = {
        "tested_bytes": each_number(results, lambda result: result.tested_bytes),
        "wrong_words": each_number(results, lambda result: result.wrong_words),
    }
    mismatches: Json = {
        str(place.index): result.mismatches
        for place, result in zip(node.found, results, strict=True)
        if not isinstance(result, Failure) and result.mismatches
    }
    return Measured(metrics, failure_facts(node.found, results), {"mismatches": mismatches})


def _transfers(node: MeasuredNode) -> Measured:
    """One device after the other, as in nvbandwidth, so that they do not share the bandwidth of the host."""
    hosts: dict[frozenset[int], torch.Tensor] = {}
    results: list[Transfers | Failure] = []
    for place in node.found:
        cpus = node.cpus.get(place.index, frozenset())
        results += attempt_each([place], partial(transfers, job=node.moving, cpus=cpus, hosts=hosts))
    metrics: dict[str, Metric] = {
        "to_device_gbps": each_number(results, lambda result: result.to_device),
        "to_host_gbps": each_number(results, lambda result: result.to_host),
    }
    near = all(isinstance(result, Failure) or result.near for result in results)
    return Measured(metrics, failure_facts(node.found, results), {"host_memory_near": near})


def _pairs(node: MeasuredNode) -> Measured:
    found = node.found
    if len(found) < 2:
        return Measured({}, [], {})
    results: list[list[float | None] | Failure] = []
    for place in found:
        results += attempt_each([place], partial(pairs.row, found=found, job=node.moving))
    unknown: list[float | None] = [None] * len(found)
    matrix = [unknown if isinstance(result, Failure) else result for result in results]
    missing = pairs.without_access(found)
    facts: Json = {
        peer_judgement.MATRIX: [[*speeds] for speeds in matrix],
        "without_peer_access": [[*pair] for pair in missing],
        "peer_access": not missing,
    }
    return Measured({peer_judgement.METRIC: pairs.of_each(matrix)}, failure_facts(found, results), facts)


def _host(node: MeasuredNode) -> Measured:
    results = attempt_each([CPU], partial(bandwidth, job=node.moving))
    (copy,), (triad,) = (each_number(results, number) for number in (lambda one: one.copy, lambda one: one.triad))
    return Measured({"host_copy_gbps": copy, "host_triad_gbps": triad}, failure_facts([CPU], results), {})


PARTS: dict[MemoryPart, Callable[[MeasuredNode], Measured]] = {
    "bandwidth": _bandwidth,
    "pattern": _pattern,
    "transfers": _transfers,
    "pairs": _pairs,
    "host": _host,
}
