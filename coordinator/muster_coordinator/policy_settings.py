"""The policy that the settings name, held against the checks that are installed here."""

from collections.abc import Mapping

from muster.check import AnyCheck
from muster.config import Settings
from muster.plugins import Plugins, collect_checks
from muster_coordinator.quarantine.known_findings import known_findings
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.policy_file import read_policy


def known_checks(plugins: Plugins) -> Mapping[str, AnyCheck] | None:
    """All checks that are installed here, by name; None where a plugin has not loaded, whose checks may be meant."""
    checks = collect_checks(plugins)
    return None if plugins.failed else checks


def policy_of(settings: Settings, checks: Mapping[str, AnyCheck] | None) -> Policy:
    """The policy in effect; SettingsError tells of all that is wrong with it.

    `checks` are all that there are, by name. Where they are not known (None), any finding may be named.
    """
    return read_policy(settings.quarantine.policy_file, None if checks is None else known_findings(checks))
