"""The hooks that a plugin may implement.

Contribute hooks are called once, when a process starts; notify hooks are coroutines, isolated and time-limited.
A plugin is whatever an entry point in the group `muster` names: a module, or a class that is called without arguments.
"""

from collections.abc import Iterable

import pluggy

from muster.check import AnyCheck, Context, IdleProbe, Reservation
from muster.config import Config
from muster.model import Inventory, Run
from muster.node_health import NodeHealthReport
from muster.transition import ActionOutcome, Survey, Transition

PROJECT = "muster"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def muster_configure(config: Config) -> None:
    """Called first: read your settings with `config.plugin(name, model)`, so that wrong ones are refused at start."""


@hookspec
def muster_checks(config: Config) -> Iterable[AnyCheck]:
    """The checks that you bring."""
    return ()


@hookspec(firstresult=True)
def muster_inventory(config: Config) -> Inventory | None:
    """The devices of this node, or None when you cannot tell. Called in a child process; may import pynvml."""


@hookspec
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    """Probes that tell whether somebody else works on this node; a run that needs idleness needs all to say idle."""
    return ()


@hookspec
def muster_reservations(config: Config) -> Iterable[Reservation]:
    """Reservations that keep a scheduler's work off this node while a group or a requested run needs it idle."""
    return ()


@hookspec
def muster_prepare_run(config: Config, check: AnyCheck, context: Context) -> None:
    """Called in the child process of a run just before it measures: set its environment up."""


@hookspec
async def muster_survey(config: Config) -> Survey | None:
    """How your scheduler has its nodes; None when you are no actor here, which the settings decide.

    Asked when the coordinator starts and every few minutes. It changes nothing; what is not as decided is told again
    through `muster_transition`. Raise what keeps you from acting, in words that say what to change; what you lack when
    you can tell of nodes all the same is the survey's `problem`.
    """


@hookspec
async def muster_transition(config: Config, transition: Transition) -> ActionOutcome | None:
    """A node's service state has changed: act on it or tell somebody; None when you are not to.

    May be told again, with the same id, until it was answered with something else than FAILED, and whenever the
    scheduler is found to have the node otherwise: do what is missing and answer DONE when nothing is. What you raise
    counts as FAILED. Of two transitions of a node the later is told last, never beside the earlier; one that has waited
    until then is not told at all.
    """


@hookspec
async def muster_node_health(config: Config, reports: tuple[NodeHealthReport, ...]) -> None:
    """How these nodes are, by their checks: show it where others look, and decide nothing by it.

    Told in every mode of the quarantine, within a second when it has changed, and again for every node each
    `quarantine.resync_s` seconds, as a heartbeat. Of two reports about a node, the one with the later `at` holds. If
    you raise, what has changed is told again.
    """


@hookspec
async def muster_result(config: Config, run: Run) -> None:
    """A run has been stored: export it."""


@hookspec
async def muster_close(config: Config) -> None:
    """The process that called your coroutines is about to end: close what they hold open."""


CONTRIBUTE = (
    "muster_configure",
    "muster_checks",
    "muster_inventory",
    "muster_idle_probes",
    "muster_reservations",
    "muster_prepare_run",
)
NOTIFY = ("muster_survey", "muster_transition", "muster_node_health", "muster_result", "muster_close")
