"""The command line that starts a sweep again as it was requested."""

import json
import shlex
from collections.abc import Iterator

from muster.params import parse_params
from muster_coordinator.model.sweep_records import SweepRecord, SweepRequest

MOST_CHARACTERS = 1_000
"""A longer command line is of no use to a person."""


def start_command(sweep: SweepRecord) -> str | None:
    """The command line; None if it would be too long, for example because the request names thousands of nodes.

    A sweep of an earlier release has no request; its command line names its nodes.
    """
    asked = sweep.asked or SweepRequest(
        check=sweep.check, params=sweep.params, strategy=sweep.strategy, nodes=sweep.nodes or None
    )
    text = shlex.join(("muster", "sweep", "start", *_options(asked)))
    return text if len(text) <= MOST_CHARACTERS else None


def _options(asked: SweepRequest) -> Iterator[str]:
    """Every option that differs from its default, and its value."""
    usual = SweepRequest(check=asked.check)
    names = ("strategy", "pairing", "passes", "max_parallel", "max_rounds", "max_node_s", "priority")
    given = {"check": asked.check, "nodes": asked.select if asked.nodes is None else ",".join(asked.nodes)}
    given |= {name: getattr(asked, name) for name in names if getattr(asked, name) != getattr(usual, name)}
    for name, value in given.items():
        if value is not None:
            yield from (f"--{name.replace('_', '-')}", f"{value}")
    for key, param in asked.params.items():
        yield from ("--param", f"{key}={_value(key, param)}")


def _value(key: str, value: object) -> str:
    """The value as `parse_params` reads it: text as it is, unless it would be read as JSON."""
    if isinstance(value, str) and parse_params([f"{key}={value}"]) == {key: value}:
        return value
    return json.dumps(value)
