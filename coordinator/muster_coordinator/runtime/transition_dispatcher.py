"""Sends transitions to plugins, and returns their outcomes to the fleet.

Each plugin gets the transitions of one node in order, and those of different nodes concurrently, the urgent ones first.
A plugin that hangs or fails delays no other plugin.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

import structlog

from muster.plugins import HookAnswer, Plugins
from muster.transition import ActionOutcome, Effect, Transition, cause_text
from muster_coordinator.model.quarantine_events import ActionEnded, AllActorsCalled, DispatchTransition
from muster_coordinator.runtime.transition_queue import TransitionQueue

HOOK = "muster_transition"

TIMEOUT_S = 10.0

PATIENCE_S = 0.5
"""Seconds that a call waits while many nodes report at once: their reports may bring more urgent transitions.

With this wait, a plugin gets at most twice AT_ONCE nodes a second. An overloaded coordinator always waits for as long.
A drain does not wait: nothing is more urgent.
"""

LONGEST_WAIT_S = 86_400.0
"""Longest accepted `retry_after_s` of a plugin. A longer one counts as a mistake."""

DispatchEvent = ActionEnded | AllActorsCalled

NO_ACTOR = ActionOutcome(effect=Effect.LEFT, detail="is no longer enabled")
"""The outcome of a repeated call to a plugin that has been disabled since."""

OVERTAKEN = ActionOutcome(effect=Effect.LEFT, detail="was replaced by a later transition before it was called")
"""The outcome of a transition that was still waiting when the next one of its node came."""

log = structlog.get_logger()


class TransitionDispatcher:
    """Calls plugins for the transitions of the quarantine; `deliver` takes their outcomes.

    `calm` returns when no burst of reports is under way, or after the given seconds.
    """

    def __init__(
        self, plugins: Plugins, deliver: Callable[[DispatchEvent], object], calm: Callable[[float], Awaitable[None]]
    ) -> None:
        self._plugins = plugins
        self._deliver = deliver
        self._calm = calm
        self._waiting: asyncio.Queue[DispatchTransition] = asyncio.Queue()
        self._queues: defaultdict[str, TransitionQueue] = defaultdict(TransitionQueue)  # by plugin
        self._to_tell: dict[str, int] = {}  # by transition, the number of plugins that were not called yet

    def act(self, act: DispatchTransition) -> None:
        """Queues a transition for the plugins."""
        self._waiting.put_nowait(act)

    async def run(self) -> None:
        """Calls plugins for queued transitions, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                act = await self._waiting.get()
                plugins = act.actors or self._plugins.implementing(HOOK)
                if not act.actors:
                    self._expect(act.record.transition, len(plugins))
                for plugin in plugins:
                    overtaken = self._queues[plugin].add(act)
                    if overtaken is not None:
                        self._conclude(plugin, overtaken, OVERTAKEN)
                    self._go_on(group, plugin)

    def _go_on(self, group: asyncio.TaskGroup, plugin: str) -> None:
        """Starts the calls that a plugin may get now."""
        while (act := self._queues[plugin].begin()) is not None:
            group.create_task(self._call(group, plugin, act), name=f"{plugin} about {act.record.transition.id}")

    async def _call(self, group: asyncio.TaskGroup, plugin: str, act: DispatchTransition) -> None:
        if not act.record.transition.is_out:
            await self._calm(PATIENCE_S)
        outcome = await self._ask(plugin, act.record.transition)
        if outcome is None and act.actors:
            outcome = NO_ACTOR
        self._conclude(plugin, act, outcome)
        self._queues[plugin].end(act.record.transition.node)
        self._go_on(group, plugin)

    async def _ask(self, plugin: str, transition: Transition) -> ActionOutcome | None:
        """The outcome at a plugin; None if the transition does not concern the plugin."""
        if plugin not in self._plugins.implementing(HOOK):
            return None
        return outcome_of(await self._plugins.call_one(plugin, HOOK, TIMEOUT_S, transition=transition))

    def _conclude(self, plugin: str, act: DispatchTransition, outcome: ActionOutcome | None) -> None:
        """Delivers the outcome at a plugin, and after the last plugin also that all were called."""
        if outcome is not None:
            self._report(plugin, act.record.transition, outcome)
        if not act.actors:
            self._expect(act.record.transition, self._to_tell[act.record.transition.id] - 1)

    def _expect(self, transition: Transition, plugins: int) -> None:
        """Notes how many plugins must still be called."""
        self._to_tell[transition.id] = plugins
        if plugins == 0:
            del self._to_tell[transition.id]
            self._deliver(AllActorsCalled(node=transition.node, transition=transition.id))

    def _report(self, plugin: str, transition: Transition, outcome: ActionOutcome) -> None:
        ended = ActionEnded(
            node=transition.node,
            transition=transition.id,
            actor=plugin,
            effect=outcome.effect,
            detail=outcome.detail,
            retry_after_s=outcome.retry_after_s,
            only_tells=outcome.only_tells,
        )
        fields = ended.model_dump(mode="json", exclude={"kind"})
        log.info("transition_told", after=transition.after, causes=cause_text(transition), **fields)
        self._deliver(ended)


def outcome_of(answer: HookAnswer) -> ActionOutcome | None:
    """The outcome of an answer; None if it does not concern the plugin, FAILED if it raised or is not valid."""
    if answer.error is not None:
        return ActionOutcome(effect=Effect.FAILED, detail=answer.error)
    if answer.value is None or (isinstance(answer.value, ActionOutcome) and _is_sound(answer.value)):
        return answer.value
    return ActionOutcome(
        effect=Effect.FAILED, detail=f"answered {type(answer.value).__name__}, not a sound ActionOutcome"
    )


def _is_sound(outcome: ActionOutcome) -> bool:
    """Whether the outcome is valid. Plugins can put anything into it."""
    wait_s = outcome.retry_after_s
    waits = wait_s is None or (isinstance(wait_s, int | float) and 0 <= wait_s <= LONGEST_WAIT_S)
    said = isinstance(outcome.effect, Effect) and isinstance(outcome.detail, str)
    return said and waits and isinstance(outcome.only_tells, bool)
