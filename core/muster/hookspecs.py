"""The hooks that a plugin may implement.

Contribute hooks are called once, when a process starts. Notify hooks are coroutines with a time limit; if one fails,
the others go on. A plugin is what an entry point in the group `muster` names: a module, or a class that is called
without arguments.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy

from muster.check import AnyCheck, Context, DepartureProbe, IdleProbe, Reservation
from muster.config import Config
from muster.model import Inventory, MachineType, Run

if TYPE_CHECKING:  # memory: an agent calls none of the hooks with these models
    from muster.alarm import Alarm
    from muster.artifact import Artifact
    from muster.leader_lock import LeaderLock
    from muster.node_health import NodeHealthReport
    from muster.transition import ActionOutcome, Survey, Transition

PROJECT = "muster"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def muster_configure(config: Config) -> None:
    """Called first. Read your settings with `config.plugin(name, model)`; it refuses wrong settings at the start."""


@hookspec
def muster_checks(config: Config) -> Iterable[AnyCheck]:
    """Returns the checks of the plugin."""
    return ()


@hookspec(firstresult=True)
def muster_inventory(config: Config) -> Inventory | None:
    """Returns the devices of this node, or None if unknown. Runs in a child process; may import pynvml."""


@hookspec
def muster_machine_types(config: Config) -> Iterable[MachineType]:
    """Returns what you know to be the machine type of this node, such as the answer of its cloud.

    Runs in a child process with the inventory, at the start and every few minutes. Answer within a second or two. If
    your source does not answer, return nothing: you are asked again.
    """
    return ()


@hookspec
def muster_labels(config: Config) -> Mapping[str, str]:
    """Returns labels of this node, such as its zone, with the keys and values that Kubernetes accepts.

    Called together with `muster_machine_types`, under the same rules. Labels in `agent.labels_file` have precedence.
    """
    return {}


@hookspec
def muster_departures(config: Config) -> Iterable[DepartureProbe]:
    """Returns probes that say whether this node leaves or restarts as planned. What it shows meanwhile is no fault."""
    return ()


@hookspec
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    """Returns probes that say whether this node is idle. A run that needs an idle node waits until all say so."""
    return ()


@hookspec
def muster_reservations(config: Config) -> Iterable[Reservation]:
    """Returns reservations. They keep a scheduler from giving this node work during group runs and requested runs."""
    return ()


@hookspec
def muster_prepare_run(config: Config, check: AnyCheck, context: Context) -> None:
    """Called in the child process of a run just before it measures. Prepare the environment of the run."""


@hookspec
def muster_leader_lock(config: Config, url: str) -> "LeaderLock | None":
    """Returns a lock for the leader of several coordinators, or None. Used if `leader.lock` names your plugin.

    `url` is that of this coordinator's API: let the others learn it, so that they can pass requests on. It is called in
    the event loop, and must not connect yet.
    """


@hookspec
async def muster_survey(config: Config) -> "Survey | None":
    """Returns the nodes and their states at your scheduler, or None if the settings do not make the plugin an actor.

    The coordinator calls it at its start and every few minutes. It must change nothing. If a node differs from the
    decision, the coordinator calls `muster_transition` again. If you cannot act, raise an error that says what to
    change. If you cannot act but can list the nodes, return the survey with a `problem`.
    """


@hookspec
async def muster_transition(config: Config, transition: "Transition") -> "ActionOutcome | None":
    """A node's service state has changed: act on it or notify somebody. Returns None if the plugin does neither.

    The coordinator calls it again with the same id until it returns something other than FAILED, and whenever the
    scheduler differs from the decision. Do what is missing. If nothing is missing, return DONE. An exception counts
    as FAILED. Transitions of one node run one after the other. A transition that still waits when a later one comes
    is dropped.
    """


@hookspec
async def muster_node_health(config: Config, reports: "tuple[NodeHealthReport, ...]") -> bool | None:
    """The health of nodes by their checks. Show it to other programs; do not drain nodes because of it.

    Returns False if your settings say that you show nothing: then the coordinator need not call you again.

    The coordinator calls it in every mode: within a second after a change, and for every node once in five minutes, as
    a heartbeat. If you have two reports about a node, use the one with the later `at`. If you raise, the coordinator
    sends the changes again.
    """


@hookspec
async def muster_alarm(config: Config, alarm: "Alarm") -> "ActionOutcome | None":
    """An alarm has begun, or is over: notify somebody. Returns None if the plugin does not.

    The coordinator calls it once when the alarm begins and once when it is over. If you return FAILED or raise, it
    calls again until you have taken the alarm, or until there is newer news of the same kind and subject. So the end
    of an alarm may be the first that you hear of it. A restart of the coordinator does not repeat what you have taken.
    In a `dry_run`, notify nobody and return WOULD.
    """


@hookspec
async def muster_result(config: Config, run: Run) -> None:
    """A run has been stored: export it."""


@hookspec
async def muster_artifacts(config: Config, artifacts: "tuple[Artifact, ...]") -> "ActionOutcome | None":
    """Documents about a sweep that ended, an acceptance that was received or a run that failed: store them elsewhere.

    Returns None if your settings say that you store nothing: then the coordinator does not call you again. If you
    return FAILED or raise, it calls again with the same documents for about 40 minutes. Write each of them whole, under
    its key. You have a minute. `muster check run --store` calls in the same way, for about 20 seconds.
    """


@hookspec
async def muster_close(config: Config) -> None:
    """The process that called your coroutines ends. Close your connections and files."""


CONTRIBUTE = (
    "muster_configure",
    "muster_checks",
    "muster_inventory",
    "muster_machine_types",
    "muster_labels",
    "muster_departures",
    "muster_idle_probes",
    "muster_reservations",
    "muster_prepare_run",
    "muster_leader_lock",
)
NOTIFY = (
    "muster_survey",
    "muster_transition",
    "muster_alarm",
    "muster_node_health",
    "muster_result",
    "muster_artifacts",
    "muster_close",
)
