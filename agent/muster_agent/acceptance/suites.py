"""The suites of `muster check run --suite`: those in `suites.toml` beside this file, and the operator's."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from muster.check import AnyCheck, Scope
from muster.config import Settings, SuiteSettings
from muster.errors import Refused, unknown
from muster.model import Json
from muster.toml import shipped_table
from muster.version import __version__
from muster.wire.messages import PluginInfo
from muster_agent.acceptance.selection import SelectedCheck, find, select_all, select_named

_SUITES = TypeAdapter(dict[str, SuiteSettings])


@dataclass(frozen=True, slots=True)
class SuiteStep:
    """One check of a suite. `section` groups steps for people."""

    section: str
    selected: SelectedCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """Steps to run. They are repeated until `repeat_for_s` seconds have passed; 0 runs them once.

    `failed` lists the plugins that did not load, if the plan is for all checks.
    """

    suite: str
    steps: tuple[SuiteStep, ...]
    repeat_for_s: float = 0.0
    failed: tuple[PluginInfo, ...] = ()

    @property
    def selected(self) -> list[SelectedCheck]:
        """The checks of the steps."""
        return [step.selected for step in self.steps]

    @property
    def has_groups(self) -> bool:
        """Whether a step runs over all processes of a job together."""
        return any(one.check.scope is Scope.GROUP for one in self.selected)

    @property
    def digest(self) -> str:
        """A hash that is equal for two processes only if they would run the same."""
        planned = [(step.selected.check.name, step.selected.params.model_dump(mode="json")) for step in self.steps]
        versioned = [__version__, planned]  # other versions exchange other messages
        return hashlib.blake2b(json.dumps(versioned, sort_keys=True).encode(), digest_size=16).hexdigest()


def suites(settings: Settings) -> dict[str, SuiteSettings]:
    """All suites by name, the operator's before those that come with muster."""
    return _SUITES.validate_python(shipped_table("muster_agent.acceptance", "suites.toml")) | settings.suites


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRequest:
    """A request: a suite, every check, or checks by name. `params` and `quick` are for the latter two."""

    names: tuple[str, ...]
    every: bool
    suite: str | None
    quick: bool
    params: Json


def plan_of(
    asked: AcceptanceRequest, settings: Settings, checks: Mapping[str, AnyCheck], failed: Sequence[PluginInfo]
) -> SuitePlan:
    """The steps of a request. Raises Refused if it is not exactly one of the three, or cannot run."""
    if (asked.suite is not None) + asked.every + bool(asked.names) != 1:
        raise Refused(f"either name the checks to run, or give --all or --suite (valid: {', '.join(sorted(checks))})")
    if asked.suite is not None:
        if asked.params or asked.quick:
            raise Refused("--param and --quick do not go with --suite: its steps have their own parameters")
        return _plan_suite(asked.suite, settings, checks, failed)
    if asked.every:
        everything = [checks[name] for name in sorted(checks)]
        selected = select_all(everything, settings.checks, asked.params, quick=asked.quick)
        return SuitePlan(suite="all", steps=_unsorted(selected), failed=tuple(failed))
    named = [find(checks, name, failed) for name in dict.fromkeys(asked.names)]
    selected = select_named(named, settings.checks, asked.params, quick=asked.quick)
    return SuitePlan(suite="checks", steps=_unsorted(selected))


def _unsorted(selected: Iterable[SelectedCheck]) -> tuple[SuiteStep, ...]:
    return tuple(SuiteStep("CHECKS", one) for one in selected)


def _plan_suite(
    name: str, settings: Settings, checks: Mapping[str, AnyCheck], failed: Sequence[PluginInfo]
) -> SuitePlan:
    known = suites(settings)
    if name not in known:
        raise Refused(unknown("suite", name, known))
    suite = known[name]
    steps = []
    for number, step in enumerate(suite.steps, start=1):
        try:
            check = find(checks, step.check, failed)
            (selected,) = select_named([check], settings.checks, step.params, quick=step.quick)
        except Refused as error:
            raise Refused(f"suite {name}, step {number}: {error}") from None
        steps.append(SuiteStep(step.section, selected))
    return SuitePlan(suite=name, steps=tuple(steps), repeat_for_s=suite.repeat_for_s or 0.0, failed=tuple(failed))
