"""The plugin `script`. Only the settings define what it runs; nothing sent over the network can."""

from typing import TYPE_CHECKING

from muster import Check, Config, hookimpl
from muster.errors import SettingsError
from muster_plugins.checks.script.settings import NAME, ScriptSettings
from muster_plugins.checks.script.trust import distrust
from muster_plugins.shared.no_params import NoParams

if TYPE_CHECKING:
    from muster import ActionOutcome, Alarm, Survey, Transition


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, ScriptSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[NoParams]]:
    scripts = config.plugin(NAME, ScriptSettings).checks
    if not scripts:
        return []
    from muster_plugins.checks.script.check import make_check  # noqa: PLC0415 (memory that only nodes with scripts should spend)

    return [make_check(f"{NAME}.{name}", script) for name, script in scripts.items()]


@hookimpl
async def muster_survey(config: Config) -> "Survey | None":
    actor = config.plugin(NAME, ScriptSettings).actor
    if actor is None:
        return None
    if reason := distrust(actor.path):
        raise SettingsError(f"plugins.{NAME}.actor.path: {reason}")
    from muster import Survey  # noqa: PLC0415 (memory that only a coordinator should spend)

    return Survey(summary=f"script {actor.path}", can_cordon=actor.can_cordon)


@hookimpl
async def muster_transition(config: Config, transition: "Transition") -> "ActionOutcome | None":
    actor = config.plugin(NAME, ScriptSettings).actor
    if actor is None:
        return None
    from muster_plugins.checks.script.actor import act  # noqa: PLC0415 (memory, as above)

    return await act(actor, config.settings.fleet, transition)


@hookimpl
async def muster_alarm(config: Config, alarm: "Alarm") -> "ActionOutcome | None":
    actor = config.plugin(NAME, ScriptSettings).actor
    if actor is None or not actor.alarms:
        return None
    from muster_plugins.checks.script.actor import notify  # noqa: PLC0415 (memory, as above)

    return await notify(actor, config.settings.fleet, alarm)
