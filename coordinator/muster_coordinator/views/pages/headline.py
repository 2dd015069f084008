"""The sentence at the top of the page of the fleet, and what does not work."""

from collections.abc import Iterator
from dataclasses import dataclass

from muster.nouns import count
from muster_coordinator.model.findings import cause_label
from muster_coordinator.views.pages.fleet_facts import CoordinatorFacts, FleetFacts

EARLY_DAYS = 3
"""As `store.disk_budget` has it, which warns in the log; a test compares them."""

_MOST_NAMES = 5

_MODES = {
    "observe": "mode is observe: no node is drained",
    "dry-run": "mode is dry-run: nodes are only said to be drained",
    "enforce": "draining works",
}


@dataclass(frozen=True, slots=True)
class Headline:
    """`usable` of `nodes`, and the rest of the sentence in parts.

    `is_current` is false while the coordinator hears no node: then the numbers are the last known ones. `frozen` says
    why draining is frozen, `problems` what else does not work.
    """

    usable: int
    nodes: int
    parts: tuple[str, ...]
    is_current: bool
    frozen: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def verb(self) -> str:
        if self.is_current:
            return "is usable" if self.nodes == 1 else "are usable"
        return "was usable when last heard" if self.nodes == 1 else "were usable when last heard"


def headline(facts: FleetFacts) -> Headline:
    """The sentence about this fleet."""
    present = [row for row in facts.rows if not row.left]
    frozen = tuple(
        f"Draining is frozen: {count(event.nodes, 'node')} report {cause_label(event.cause)}"
        for event in facts.quarantine.frozen
    )
    return Headline(
        usable=sum(row.is_usable for row in present),
        nodes=len(present),
        parts=tuple(_parts(facts, is_frozen=bool(frozen))) if present else (),
        is_current=facts.coordinator.is_connected,
        frozen=frozen,
        problems=tuple(_problems(facts)),
    )


def _parts(facts: FleetFacts, *, is_frozen: bool) -> Iterator[str]:
    quarantine = facts.quarantine
    yield f"{quarantine.away:,} of at most {count_text(quarantine.limit, 'node')} away"
    if quarantine.held:
        yield f"{count_text(len(quarantine.held), 'node')} held: faulty and not drained"
    if simulated := sum(row.is_simulated for row in facts.rows if not row.left):
        yield f"{count_text(simulated, 'node')} with simulated devices"
    if not is_frozen and not _lacks_an_actor(facts):
        yield _MODES[quarantine.mode]


def count_text(number: int, what: str) -> str:
    """A number with its noun, with a comma at thousands."""
    return f"{number:,}{count(number, what).removeprefix(str(number))}"


def _problems(facts: FleetFacts) -> Iterator[str]:
    yield from _of_the_coordinator(facts.coordinator)
    if facts.fleet.load.is_overloaded:
        yield f"The coordinator is overloaded. {facts.fleet.load.advice}"
    database = facts.fleet.database
    if database is not None and database.days_left is not None and database.days_left < EARLY_DAYS:
        yield (
            f"The database reaches {database.max_gb:g} GB in {database.days_left:.1f} days; then the oldest detail "
            "goes: set store.max_gb higher, or run checks less often"
        )
    for actor in facts.actors:
        if actor.problem is not None:
            yield f"Actor {actor.name}: {actor.problem}"
    if _lacks_an_actor(facts):
        yield "No actor can drain nodes: enable slurm or kubernetes"
    if facts.unheard:
        yield (
            f"Kept out by a scheduler, and no agent reports from there: {names_text(facts.unheard)}. Check that the "
            "agent runs there, under this name"
        )


def _lacks_an_actor(facts: FleetFacts) -> bool:
    return facts.quarantine.mode == "enforce" and not any(actor.can_cordon for actor in facts.actors)


def _of_the_coordinator(coordinator: CoordinatorFacts) -> Iterator[str]:
    if not coordinator.is_connected:
        yield "Not connected to the broker: what follows is the last known state. Check the broker and broker.url"
    if coordinator.is_stuck:
        yield "Storing hangs: restart the coordinator"
    elif coordinator.backlog > coordinator.usual_backlog:
        yield f"{coordinator.backlog:,} changes wait to be stored: the database is slow"
    if coordinator.muted:
        yield f"Muted, because they flood the broker: {names_text(coordinator.muted)}"
    if coordinator.unread:
        yield f"{count_text(coordinator.unread, 'damaged row')} of the database left out; the log names them"


def names_text(names: tuple[str, ...]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES:,} more"
