"""The plugin `script`. Only the settings define what it runs; nothing sent over the network can."""

from typing import Annotated

from pydantic import Field

from muster import ActionOutcome, Alarm, Check, Config, Section, Survey, Transition, hookimpl
from muster.errors import SettingsError
from muster_plugins.checks.script.actor import ScriptActor, act, notify
from muster_plugins.checks.script.check import ScriptCheck, make_check
from muster_plugins.checks.script.trust import distrust
from muster_plugins.shared.no_params import NoParams

NAME = "script"


class ScriptSettings(Section):
    """The table `[plugins.script]`."""

    checks: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")], ScriptCheck] = Field(
        {}, description="By name, the executables; each becomes the check script.<name>"
    )
    actor: ScriptActor | None = Field(
        None, description="The executable that is run when a node changes its service state; unset: none"
    )


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, ScriptSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[NoParams]]:
    scripts = config.plugin(NAME, ScriptSettings).checks
    return [make_check(f"{NAME}.{name}", script) for name, script in scripts.items()]


@hookimpl
async def muster_survey(config: Config) -> Survey | None:
    actor = config.plugin(NAME, ScriptSettings).actor
    if actor is None:
        return None
    if reason := distrust(actor.path):
        raise SettingsError(f"plugins.{NAME}.actor.path: {reason}")
    return Survey(summary=f"script {actor.path}", can_cordon=actor.can_cordon)


@hookimpl
async def muster_transition(config: Config, transition: Transition) -> ActionOutcome | None:
    actor = config.plugin(NAME, ScriptSettings).actor
    return None if actor is None else await act(actor, config.settings.fleet, transition)


@hookimpl
async def muster_alarm(config: Config, alarm: Alarm) -> ActionOutcome | None:
    actor = config.plugin(NAME, ScriptSettings).actor
    return None if actor is None or not actor.alarms else await notify(actor, config.settings.fleet, alarm)
