"""The policy in the settings, compared with the checks that are installed here."""

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
    """All installed checks by name; None if a plugin has not loaded, because the policy may mean its checks."""
    checks = collect_checks(plugins)
    return None if plugins.failed else checks


def policy_of(settings: Settings, checks: Mapping[str, AnyCheck] | None) -> Policy:
    """The policy in effect. Raises SettingsError with everything that is wrong with it.

    `checks` are all installed checks by name. If they are unknown (None), the policy may name any finding.
    """
    policy = read_policy(settings.quarantine.policy_file, None if checks is None else known_findings(checks))
    if settings.quarantine.mode == "enforce" and takes_nothing_out(policy, checks):
        raise SettingsError(
            f"quarantine.policy_file: {settings.quarantine.policy_file}: no row can drain a node, but mode "
            "= 'enforce' is for draining: add rows that can, or keep the shipped ones (no replace = true, and no "
            "row before them that keeps every node in service)"
        )
    return policy


def takes_nothing_out(policy: Policy, checks: Mapping[str, AnyCheck] | None) -> bool:
    """Whether no row could ever drain a node, if the findings are known."""
    never = shadowed(policy, checks)
    return not any(row.drains and row.name not in never for row in policy.rows)


def shadowed(policy: Policy, checks: Mapping[str, AnyCheck] | None) -> Mapping[str, str]:
    """The names of rows that can never decide, each with the name of the row that takes all its findings."""
    if checks is None:
        return {}
    known = with_named(known_findings(checks), [pattern for row in policy.rows for pattern in row.codes])
    firsts = shadows(policy.rows, known)
    return {row.name: first.name for row, first in zip(policy.rows, firsts, strict=True) if first is not None}
