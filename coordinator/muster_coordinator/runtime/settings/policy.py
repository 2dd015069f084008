"""The policy that the settings name, held against the checks that are installed here."""

from collections.abc import Mapping

from muster.check import AnyCheck
from muster.config import Settings
from muster.errors import SettingsError
from muster.plugins import Plugins, collect_checks
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.contradictions import shadows
from muster_coordinator.runtime.settings.known_findings import known_findings, with_named
from muster_coordinator.runtime.settings.policy_file import read_policy


def known_checks(plugins: Plugins) -> Mapping[str, AnyCheck] | None:
    """All checks that are installed here, by name; None where a plugin has not loaded, whose checks may be meant."""
    checks = collect_checks(plugins)
    return None if plugins.failed else checks


def policy_of(settings: Settings, checks: Mapping[str, AnyCheck] | None) -> Policy:
    """The policy in effect; SettingsError tells of all that is wrong with it.

    `checks` are all that there are, by name. Where they are not known (None), any finding may be named.
    """
    policy = read_policy(settings.quarantine.policy_file, None if checks is None else known_findings(checks))
    if settings.quarantine.mode == "enforce" and takes_nothing_out(policy, checks):
        raise SettingsError(
            f"quarantine.policy_file: {settings.quarantine.policy_file}: no row can take a node out of service, and "
            "mode = 'enforce' is for that: give rows that can, or let the shipped ones count (no replace = true, and "
            "no row before them that keeps every node in service)"
        )
    return policy


def takes_nothing_out(policy: Policy, checks: Mapping[str, AnyCheck] | None) -> bool:
    """Whether no row could ever take a node out of service, as far as is known."""
    never = shadowed(policy, checks)
    return not any(row.takes_out and row.name not in never for row in policy.rows)


def shadowed(policy: Policy, checks: Mapping[str, AnyCheck] | None) -> Mapping[str, str]:
    """By the name of a row that can never decide, that of the row before it that takes all; as far as is known."""
    if checks is None:
        return {}
    known = with_named(known_findings(checks), [pattern for row in policy.rows for pattern in row.codes])
    firsts = shadows(policy.rows, known)
    return {row.name: first.name for row, first in zip(policy.rows, firsts, strict=True) if first is not None}
