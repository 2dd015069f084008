"""The hooks that a plugin may implement.

Contribute hooks are called once, when a process starts. Notify hooks are coroutines with a time limit; if one fails,
the others go on. A plugin is what an entry point in the group `muster` names: a module, or a class that is called
without arguments.
"""

from collections.abc import Iterable

import pluggy

from muster.alarm import Alarm
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
    """Called first: read your settings with `config.plugin(name, model)`, which refuses wrong ones at the start."""


@hookspec
def muster_checks(config: Config) -> Iterable[AnyCheck]:
    """Returns the checks of the plugin."""
    return ()


@hookspec(firstresult=True)
def muster_inventory(config: Config) -> Inventory | None:
    """Returns the devices of this node, or None if unknown. Runs in a child process; may import pynvml."""


@hookspec
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    """Returns probes that say whether somebody else works on this node; all must say idle before a run gets it."""
    return ()


@hookspec
def muster_reservations(config: Config) -> Iterable[Reservation]:
    """Returns reservations, which keep a scheduler's work off this node while a group or a requested run has it."""
    return ()


@hookspec
def muster_prepare_run(config: Config, check: AnyCheck, context: Context) -> None:
    """Called in the child process of a run just before it measures: prepare its environment."""


@hookspec
async def muster_survey(config: Config) -> Survey | None:
    """Returns how your scheduler has its nodes, or None if the settings do not make the plugin an actor.

    Called when the coordinator starts and every few minutes. It must change nothing. If a node differs from the
    decision, the coordinator calls `muster_transition` again. If you cannot act, raise an error that says what to
    change. If you cannot act and can still list the nodes, return the survey with a `problem`.
    """


@hookspec
async def muster_transition(config: Config, transition: Transition) -> ActionOutcome | None:
    """A node's service state has changed: act on it or notify somebody. Returns None if the plugin does neither.

    The coordinator calls it again with the same id until it returns something other than FAILED, and whenever the
    scheduler differs from the decision. Do what is missing; if nothing is, return DONE. An exception counts as
    FAILED. Two transitions of one node never run at the same time, and the later one runs last. A transition that
    still waits when a later one comes is dropped.
    """


@hookspec
async def muster_node_health(config: Config, reports: tuple[NodeHealthReport, ...]) -> None:
    """How these nodes are, by their checks: show it where others look, and decide nothing by it.

    Told in every mode of the quarantine, within a second when it has changed, and again for every node each
    `quarantine.resync_s` seconds, as a heartbeat. Of two reports about a node, the one with the later `at` holds. If
    you raise, what has changed is told again.
    """


@hookspec
async def muster_alarm(config: Config, alarm: Alarm) -> ActionOutcome | None:
    """An alarm has begun, or is over: notify somebody. Returns None if the plugin does not.

    The coordinator calls it once when the alarm begins and once when it is over. If you return FAILED or raise, it
    calls again until you have taken the alarm or there is something newer to say about its kind and subject. So you may
    be told of an end whose begin you have not taken. A restart of the coordinator tells nothing again. In a `dry_run`,
    notify nobody and return WOULD.
    """


@hookspec
async def muster_result(config: Config, run: Run) -> None:
    """A run has been stored: export it."""


@hookspec
async def muster_close(config: Config) -> None:
    """The process that called your coroutines ends: close what they hold open."""


CONTRIBUTE = (
    "muster_configure",
    "muster_checks",
    "muster_inventory",
    "muster_idle_probes",
    "muster_reservations",
    "muster_prepare_run",
)
NOTIFY = ("muster_survey", "muster_transition", "muster_alarm", "muster_node_health", "muster_result", "muster_close")
