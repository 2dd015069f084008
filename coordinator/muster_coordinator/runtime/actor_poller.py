"""Surveys the nodes at the schedulers of all actors, at the start and every few minutes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from types import MappingProxyType

import structlog

from muster.backoff import backoff_s
from muster.errors import Unavailable
from muster.labels import valid_labels
from muster.plugins import HookAnswer, Plugins
from muster.transition import Mark, SchedulerNode, Survey
from muster_coordinator.model.events import LabelsSeen
from muster_coordinator.model.quarantine_events import NodeNotListed, NodeSurveyed
from muster_coordinator.model.quarantine_views import ActorView

HOOK = "muster_survey"

FIRST_RETRY_S = 5.0
"""Wait until the next survey if an actor could not answer; it doubles with each failure in a row. An overloaded
scheduler mostly needs a pause.
"""

TIMEOUT_S = 60.0
"""Timeout of a survey. Ten thousand nodes come in pages of some hundred, each of which takes up to a second."""

AT_ONCE = 200
"""Maximum number of events of a survey that are taken before other tasks get their turn."""

NOTHING = Survey(summary="", can_cordon=False)
"""The result for a plugin that is no longer an actor."""

ActorObservation = LabelsSeen | NodeSurveyed | NodeNotListed

log = structlog.get_logger()


class ActorPoller:
    """Surveys all actors; `take` takes the events about nodes.

    `listed` holds the names of the nodes of each actor at the last survey of the previous coordinator.
    """

    def __init__(
        self,
        plugins: Plugins,
        every_s: float,
        take: Callable[[Iterable[ActorObservation]], Awaitable[None]],
        listed: Mapping[str, set[str]] = MappingProxyType({}),
    ) -> None:
        self.actors: tuple[ActorView, ...] = ()
        self._plugins = plugins
        self._every_s = every_s
        self._take = take
        self._listed = dict(listed)
        self._surveyed = asyncio.Event()
        self._may_answer_later = False  # whether an actor has failed at the last survey, and no setting is wrong
        # By actor, the nodes that its scheduler keeps out as new or by our mark.
        self._kept_out: dict[str, set[str]] = {}
        self._unanswered = 0  # the number of surveys in a row in which an actor could not answer

    @property
    def not_loaded(self) -> int:
        """The number of plugins that the coordinator could not load; an actor may be among them."""
        return len(self._plugins.failed)

    async def require_an_actor(self) -> None:
        """Returns after the first survey if an actor can drain nodes, or may when its scheduler answers again.

        Otherwise raises Unavailable, with the problem of every actor.
        """
        await self._surveyed.wait()
        if self._may_answer_later or any(actor.can_cordon for actor in self.actors):
            return
        problems = [_why_no_drain(actor) for actor in self.actors]
        raise Unavailable(
            "quarantine.mode = 'enforce' needs an actor that works, and there is none: "
            + ("; ".join(problems) or "enable one, for example plugins.kubernetes.actor.enabled = true")
        )

    async def run(self) -> None:
        """Surveys at once and then again and again; sooner while an actor cannot answer. Does not return."""
        while True:
            await self.survey()
            await asyncio.sleep(self._pause_s())

    async def survey(self) -> None:
        """Surveys every actor once and delivers the events."""
        surveys = await self._ask()
        self._surveyed.set()
        could_not_say = {actor.name for actor in self.actors if actor.summary is None}
        for actor in self._listed.keys() - surveys.keys() - could_not_say:
            surveys[actor] = NOTHING
        for actor, survey in surveys.items():
            await self._take_survey(actor, survey)

    def unheard(self, is_present: Callable[[str], bool]) -> tuple[str, ...]:
        """Nodes that are kept out as new or by our mark and are not present, so that muster never accepts them.

        The agent of such a node has not reported since: it does not run, or it uses another name than the scheduler.
        """
        kept_out = set[str]().union(*self._kept_out.values())
        return tuple(sorted(node for node in kept_out if not is_present(node)))

    async def _ask(self) -> dict[str, Survey]:
        """The surveys of the actors that can answer; the problems of the others are kept."""
        answers = await self._plugins.call_each(HOOK, TIMEOUT_S)
        views = [_view(answer) for answer in answers if answer.value is not None or answer.error]
        failed = {answer.plugin for answer in answers if answer.error}
        for view in views:
            if view.problem is not None and view.name not in failed:  # the call has logged each failure
                log.warning("actor_not_ready", actor=view.name, problem=view.problem)
        self._unanswered = self._unanswered + 1 if failed else 0
        self._may_answer_later = any(answer.error and not answer.is_misconfigured for answer in answers)
        self.actors = tuple(sorted(views, key=lambda view: view.name))
        return {answer.plugin: answer.value for answer in answers if isinstance(answer.value, Survey)}

    def _pause_s(self) -> float:
        if not self._unanswered:
            return self._every_s
        return backoff_s(self._unanswered, FIRST_RETRY_S, self._every_s)

    async def _take_survey(self, actor: str, survey: Survey) -> None:
        listed = {node.node for node in survey.nodes}
        missing = sorted(self._listed.get(actor, set()) - listed)
        self._listed[actor] = listed
        self._kept_out[actor] = {node.node for node in survey.nodes if _is_kept_out(node)}
        seen: Iterator[ActorObservation] = chain(
            _labels_seen(actor, survey),
            (NodeSurveyed(actor=actor, node=node.model_copy(update={"labels": {}})) for node in survey.nodes),
            (LabelsSeen(actor, node, {}) for node in missing),
            (NodeNotListed(actor=actor, node=node) for node in missing),
        )
        while some := tuple(islice(seen, AT_ONCE)):
            await self._take(some)
            await asyncio.sleep(0)


def _why_no_drain(actor: ActorView) -> str:
    if actor.problem is not None:
        return f"{actor.name}: {actor.problem}"
    return f"{actor.name} only notifies ({actor.summary}); enable slurm or kubernetes to drain"


def _is_kept_out(node: SchedulerNode) -> bool:
    """Whether a scheduler keeps the node out until muster accepts or returns it."""
    return not node.opted_out and (node.is_new or node.mark is Mark.OURS)


def _labels_seen(actor: str, survey: Survey) -> Iterator[LabelsSeen]:
    """The labels of each node. If Kubernetes would refuse one of them, all labels of the node are left out."""
    wrong: dict[str, ValueError] = {}
    for node in survey.nodes:
        try:
            labels = valid_labels(node.labels)
        except ValueError as error:
            wrong[node.node] = error
        else:
            yield LabelsSeen(actor, node.node, labels)
    if wrong:
        first, problem = next(iter(wrong.items()))
        log.warning("labels_not_taken", actor=actor, nodes=len(wrong), first=first, problem=str(problem))


def _view(answer: HookAnswer) -> ActorView:
    if isinstance(answer.value, Survey):
        survey = answer.value
        return ActorView(
            name=answer.plugin, summary=survey.summary, can_cordon=survey.can_cordon, problem=survey.problem
        )
    problem = answer.error or f"answered {type(answer.value).__name__}, not a Survey"
    return ActorView(name=answer.plugin, problem=problem)
