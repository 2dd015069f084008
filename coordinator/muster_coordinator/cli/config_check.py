"""The part of `muster config check` for the quarantine: failure domains, policy, and a replay of the stored history."""

import asyncio
import time
from collections.abc import Iterator, Mapping

from muster.check import AnyCheck
from muster.config import Config, Settings
from muster.errors import MusterError
from muster_coordinator.cli.stored_replay import days_kept, replay_history
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.acceptance import require_tests
from muster_coordinator.runtime.settings.contradictions import doubtful_rows
from muster_coordinator.runtime.settings.policy import policy_of, shadowed, takes_nothing_out
from muster_coordinator.runtime.settings.topology_file import read_topology
from muster_coordinator.views.policy_text import policy_lines
from muster_coordinator.views.replay_text import required_lines


def quarantine(config: Config, checks: Mapping[str, AnyCheck] | None) -> Iterator[str]:
    """Checks the policy, if there is a table [quarantine].

    Raises SettingsError if it, a node's tests or the file with the positions of nodes is wrong.
    """
    settings = config.settings
    read_topology(settings.topology_file)
    require_tests(settings.quarantine, checks)
    policy = policy_of(settings, checks)
    if "quarantine" not in settings.model_fields_set:
        return
    yield from policy_lines(policy, shadowed(policy, checks))
    yield from (f"Note: {doubt}" for doubt in doubtful_rows(policy.rows))
    if takes_nothing_out(policy, checks):
        yield "Note: this policy never drains a node, so mode = enforce would refuse it"
    if settings.quarantine.mode != "observe":
        yield (
            "Note: actors are not checked here. The coordinator checks them at its start; in enforce it exits with 69 "
            "unless an actor is enabled and can drain nodes"
        )
    try:
        yield from asyncio.run(_replayed(settings, policy))
    except MusterError as error:
        # The error says nothing about the policy, and perhaps no coordinator runs on this host.
        yield f"Not replayed: {error}"


async def _replayed(settings: Settings, policy: Policy) -> list[str]:
    """The decisions of the policy on the stored history. Raises Unavailable or SettingsError if it cannot be read."""
    days = days_kept(settings)
    stored = await replay_history(settings, policy, time.time() - days * 86_400)
    if stored is None:
        return ["Not replayed: there is no history here yet"]
    return list(required_lines(stored.replay, stored.nodes, days))
