"""Checks the tests of the settings against the installed checks."""

from collections.abc import Iterator, Mapping

from muster.check import AnyCheck, Scope, valid_params
from muster.errors import Refused, SettingsError, unknown
from muster.quarantine_settings import AcceptanceTest, QuarantineSettings, ReturnSettings


def require_tests(rules: QuarantineSettings, checks: Mapping[str, AnyCheck] | None) -> None:
    """Raises SettingsError, with all problems, for tests that no node could ever pass.

    `checks` are all installed checks by name. If they are unknown (None), the tests may name any check.
    """
    if checks is None:
        return
    problems = [f"setting 'quarantine.tests': {problem}" for test in rules.tests for problem in _wrong(test, checks)]
    problems += [f"setting 'quarantine.returning.sweep': {problem}" for problem in _no_sweep(rules.returning, checks)]
    if problems:
        raise SettingsError("\n".join(problems))


def _wrong(test: AcceptanceTest, checks: Mapping[str, AnyCheck]) -> list[str]:
    if test.check not in checks:
        return [unknown("check", test.check, checks)]
    try:
        valid_params(checks[test.check], test.params)
    except Refused as refused:
        return str(refused).splitlines()
    return []


def _no_sweep(returning: ReturnSettings, checks: Mapping[str, AnyCheck]) -> Iterator[str]:
    is_meant = returning.partners > 0 or "sweep" in returning.model_fields_set
    group_checks = [name for name, check in checks.items() if check.scope is Scope.GROUP]
    if is_meant and returning.sweep not in group_checks:
        yield unknown("check of scope GROUP", returning.sweep, group_checks)
