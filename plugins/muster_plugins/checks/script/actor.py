"""The operator's executable that runs when a node changes its service state, and for alarms if it wants them.

It gets the transition or the alarm as JSON on stdin. Its exit code is the outcome: 0 is DONE, 77 is LEFT, and anything
else is FAILED, which the coordinator retries. The last line of its stdout or stderr is the detail for people.

It may run again for a transition or an alarm that it has seen. It gets only a few variables of the coordinator's
environment, because others may hold secrets, and MUSTER_NODE with the name of the node or MUSTER_ALARM with the kind of
the alarm.
"""

import os

from pydantic_core import to_json

from muster import ActionOutcome, Alarm, Effect, Transition
from muster.model import Json
from muster_plugins.checks.script.child import ChildEnd, run_child
from muster_plugins.checks.script.settings import ScriptActor
from muster_plugins.checks.script.trust import distrust
from muster_plugins.shared.alarm_document import alarm_document
from muster_plugins.shared.transition_document import transition_document

_EFFECTS: dict[int | None, Effect] = {0: Effect.DONE, 77: Effect.LEFT}
"""The outcome by exit code. In test drivers (GNU Automake, Meson), 77 means skipped."""

_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TZ", "USER")


async def act(actor: ScriptActor, fleet: str, transition: Transition) -> ActionOutcome:
    """Runs the executable for a transition, unless it can no longer be trusted or this is a dry run."""
    about = f"{transition.node}, now {transition.after}"
    document, variables = transition_document(fleet, transition), {"MUSTER_NODE": transition.node}
    effect, detail = await _run(actor, document, variables, about, is_dry=transition.dry_run)
    return ActionOutcome(effect=effect, detail=detail, only_tells=not actor.can_cordon)


async def notify(actor: ScriptActor, fleet: str, alarm: Alarm) -> ActionOutcome:
    """Runs the executable for an alarm that begins or is over, under the same conditions."""
    document, variables = alarm_document(fleet, alarm), {"MUSTER_ALARM": alarm.kind.value}
    effect, detail = await _run(actor, document, variables, f"the alarm: {alarm.text}", is_dry=alarm.dry_run)
    return ActionOutcome(effect=effect, detail=detail, only_tells=True)


async def _run(
    actor: ScriptActor, document: Json, variables: dict[str, str], about: str, *, is_dry: bool
) -> tuple[Effect, str]:
    if reason := distrust(actor.path):
        return Effect.FAILED, reason
    if is_dry:
        return Effect.WOULD, f"would run {actor.path} for {about}"
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        ended = await run_child(
            actor.path, given=to_json(document), environment=environment | variables, timeout_s=actor.timeout_s
        )
    except OSError as error:
        return Effect.FAILED, f"{actor.path} cannot be started: {error.strerror}"
    return _EFFECTS.get(ended.exit_code, Effect.FAILED), _detail(actor, ended)


def _detail(actor: ScriptActor, ended: ChildEnd) -> str:
    if ended.exit_code is None:
        how = f"killed, as it had not ended within {actor.timeout_s:g} s"
    elif ended.exit_code < 0:
        how = f"killed by signal {-ended.exit_code}"
    else:
        how = f"exit code {ended.exit_code}"
    return f"{how}: {ended.last_line}" if ended.last_line else how
