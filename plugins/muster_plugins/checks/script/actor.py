"""The operator's executable that is run when a node changes its service state.

It gets the transition as JSON on stdin, and says by its exit code what came of it: 0 DONE, 77 LEFT, anything else
FAILED, to be tried again. The last line that it says, on stdout or stderr, is the detail that people are shown.

It may be run again for a transition that it has seen. Of the coordinator's environment it gets a few variables only,
since there may be secrets in others, and beside them MUSTER_NODE, the node's name.
"""

import os
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_core import to_json

from muster import ActionOutcome, Effect, Section, Transition
from muster_plugins.checks.script.child import Ended, run_child
from muster_plugins.checks.script.trust import distrust
from muster_plugins.shared.transition_document import transition_document

_EFFECTS: dict[int | None, Effect] = {0: Effect.DONE, 77: Effect.LEFT}
"""By exit code; test drivers take 77 for skipped (GNU Automake, Meson)."""

_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TZ", "USER")


class ScriptActor(Section):
    """The table `[plugins.script.actor]`."""

    path: Path = Field(description="The executable; only who you trust may be able to write it")
    timeout_s: float = Field(8.0, gt=0, le=9, description="Deadline in seconds; no plugin has more than 10")
    can_cordon: bool = Field(False, description="true: it keeps work off nodes; false: it only tells somebody")

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, value: Path) -> Path:
        # Whether it is there is seen when it is needed: agents may have the same settings, but not this file.
        if not value.is_absolute():
            raise ValueError("must be an absolute path")
        return value


async def act(actor: ScriptActor, fleet: str, transition: Transition) -> ActionOutcome:
    """Runs the executable, unless it is not to be trusted any more or the run is a dry one."""
    effect, detail = await _act(actor, fleet, transition)
    return ActionOutcome(effect=effect, detail=detail, only_tells=not actor.can_cordon)


async def _act(actor: ScriptActor, fleet: str, transition: Transition) -> tuple[Effect, str]:
    if reason := distrust(actor.path):
        return Effect.FAILED, reason
    if transition.dry_run:
        return Effect.WOULD, f"would run {actor.path} for {transition.node}, now {transition.after}"
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        ended = await run_child(
            actor.path,
            given=to_json(transition_document(fleet, transition)),
            environment=environment | {"MUSTER_NODE": transition.node},
            timeout_s=actor.timeout_s,
        )
    except OSError as error:
        return Effect.FAILED, f"{actor.path} cannot be started: {error.strerror}"
    return _EFFECTS.get(ended.exit_code, Effect.FAILED), _detail(actor, ended)


def _detail(actor: ScriptActor, ended: Ended) -> str:
    if ended.exit_code is None:
        how = f"killed, as it had not ended within {actor.timeout_s:g} s"
    elif ended.exit_code < 0:
        how = f"killed by signal {-ended.exit_code}"
    else:
        how = f"exit code {ended.exit_code}"
    return f"{how}: {ended.last_line}" if ended.last_line else how
