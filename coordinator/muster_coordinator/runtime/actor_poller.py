"""Asks the actors how their schedulers have the nodes, at the start and every few minutes."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
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
"""When somebody could not answer, all are asked again after this, then after twice that, and so on. A scheduler that is
overloaded mostly wants to be left alone for a second."""

TIMEOUT_S = 60.0
"""Ten thousand nodes come in pages of some hundred, each of which takes up to a second."""

AT_ONCE = 200
"""What is taken of a survey before others have their turn."""

NOTHING = Survey(summary="", can_cordon=False)
"""What a plugin has that is no actor any more."""

Seen = LabelsSeen | NodeSurveyed | NodeNotListed

log = structlog.get_logger()


class ActorPoller:
    """The surveys of all actors; `take` takes what they tell about nodes.

    `listed` says which nodes each actor had, by name, when the coordinator before this one asked it last.
    """

    def __init__(
        self,
        plugins: Plugins,
        every_s: float,
        take: Callable[[Iterable[Seen]], Awaitable[None]],
        listed: Mapping[str, set[str]] = MappingProxyType({}),
    ) -> None:
        self.actors: tuple[ActorView, ...] = ()
        self._plugins = plugins
        self._every_s = every_s
        self._take = take
        self._listed = dict(listed)
        self._answered: dict[str, Survey] | None = None  # what the actors have said before the first survey
        self._kept_out: dict[str, set[str]] = {}  # by actor, whom its scheduler keeps out as new or by our mark
        self._unanswered = 0  # how many times in a row somebody could not answer

    async def require_an_actor(self) -> None:
        """Unavailable, with what every actor lacks, unless one of them can drain nodes."""
        self._answered = await self._ask()
        if any(actor.can_cordon for actor in self.actors):
            return
        problems = [_why_no_drain(actor) for actor in self.actors]
        raise Unavailable(
            "quarantine.mode = 'enforce' needs an actor that works, and there is none: "
            + ("; ".join(problems) or "enable one, for example plugins.kubernetes.actor.enabled = true")
        )

    async def run(self) -> None:
        """Surveys at once and then again and again, for ever; sooner while an actor cannot answer."""
        while True:
            await self.survey()
            await asyncio.sleep(self._pause_s())

    async def survey(self) -> None:
        """Asks every actor once, and tells what they say."""
        answered, self._answered = self._answered, None
        surveys = await self._ask() if answered is None else answered
        could_not_say = {actor.name for actor in self.actors if actor.summary is None}
        for actor in self._listed.keys() - surveys.keys() - could_not_say:
            surveys[actor] = NOTHING
        for actor, survey in surveys.items():
            await self._tell(actor, survey)

    def unheard(self, present: Container[str]) -> tuple[str, ...]:
        """Who is kept out as new or by our mark and is not `present`, so that nobody will ever let it in.

        Its agent has not reported since: it does not run, or names itself otherwise than the scheduler does.
        """
        kept_out = set[str]().union(*self._kept_out.values())
        return tuple(sorted(node for node in kept_out if node not in present))

    async def _ask(self) -> dict[str, Survey]:
        """What the actors say that can say anything; what the others lack is kept as well."""
        answers = await self._plugins.call_each(HOOK, TIMEOUT_S)
        views = [_view(answer) for answer in answers if answer.value is not None or answer.error]
        failed = {answer.plugin for answer in answers if answer.error}
        for view in views:
            if view.problem is not None and view.name not in failed:  # whoever has failed was logged by the call
                log.warning("actor_not_ready", actor=view.name, problem=view.problem)
        self._unanswered = self._unanswered + 1 if failed else 0
        self.actors = tuple(sorted(views, key=lambda view: view.name))
        return {answer.plugin: answer.value for answer in answers if isinstance(answer.value, Survey)}

    def _pause_s(self) -> float:
        if not self._unanswered:
            return self._every_s
        return backoff_s(self._unanswered, FIRST_RETRY_S, self._every_s)

    async def _tell(self, actor: str, survey: Survey) -> None:
        listed = {node.node for node in survey.nodes}
        missing = sorted(self._listed.get(actor, set()) - listed)
        self._listed[actor] = listed
        self._kept_out[actor] = {it.node for it in survey.nodes if _is_kept_out(it)}
        seen: Iterator[Seen] = chain(
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
    """Whether it is for us to let a node in."""
    return not node.opted_out and (node.is_new or node.mark is Mark.OURS)


def _labels_seen(actor: str, survey: Survey) -> Iterator[LabelsSeen]:
    """The labels of each node. Where one of them is none that Kubernetes would take, the node's are left out."""
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
        told = answer.value
        return ActorView(name=answer.plugin, summary=told.summary, can_cordon=told.can_cordon, problem=told.problem)
    problem = answer.error or f"answered {type(answer.value).__name__}, not a Survey"
    return ActorView(name=answer.plugin, problem=problem)
