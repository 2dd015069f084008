"""The plugin `kubernetes`, for nodes that Kubernetes schedules."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from muster import Check, Config, IdleProbe, MachineType, Reservation, hookimpl
from muster.errors import SettingsError, Unavailable
from muster.extras import missing_package
from muster_plugins.schedulers.kubernetes import node_conditions
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings
from muster_plugins.shared.no_params import NoParams

if TYPE_CHECKING:
    from muster import ActionOutcome, NodeHealthReport, Survey, Transition
    from muster.leader_lock import LeaderLock
    from muster_plugins.schedulers.kubernetes.actor import Actor
    from muster_plugins.schedulers.kubernetes.api import ApiServer
    from muster_plugins.schedulers.kubernetes.machine_type import LabelReader

NAME = "kubernetes"

_actors: dict[Config, "Actor"] = {}
"""The coordinator's actor, whose connections stay open from the first call to the last."""

_readers: dict[Config, "LabelReader"] = {}
"""What the agent has read from the labels of its node."""


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, KubernetesSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[NoParams]]:
    return [node_conditions.check(config.plugin(NAME, KubernetesSettings), _node(config))]


@hookimpl
def muster_machine_types(config: Config) -> Iterable[MachineType]:
    settings = config.plugin(NAME, KubernetesSettings)
    if not settings.enabled:
        return ()
    from muster_plugins.schedulers.kubernetes.machine_type import LabelReader  # noqa: PLC0415 (memory that only nodes in Kubernetes should spend)

    return _readers.setdefault(config, LabelReader(_server(settings), _node(config))).read()


@hookimpl
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    settings = config.plugin(NAME, KubernetesSettings)
    if not settings.enabled:
        return []
    from muster_plugins.schedulers.kubernetes.idle import probe  # noqa: PLC0415 (memory that only nodes in Kubernetes should spend)

    ask = partial(probe, _server(settings), _node(config), settings.gpu_resources, settings.pod_uid)
    return [IdleProbe(name=NAME, probe=ask, interval_s=settings.interval_s)]


@hookimpl
def muster_reservations(config: Config) -> Iterable[Reservation]:
    settings = config.plugin(NAME, KubernetesSettings)
    if not settings.reserve:
        return []
    from muster_plugins.schedulers.kubernetes.reservation import TestingTaint  # noqa: PLC0415 (memory, as above)

    taint = TestingTaint(_server(settings), _node(config), config.settings.fleet)
    return [Reservation(name=NAME, reserve=taint.add, release=taint.remove)]


@hookimpl
def muster_leader_lock(config: Config, url: str) -> "LeaderLock | None":
    if config.settings.leader.lock != NAME:
        return None
    try:
        from muster_plugins.schedulers.kubernetes.lease_lock import LeaseLock  # noqa: PLC0415 (memory, as above)
    except ImportError as error:
        raise SettingsError(f"leader.lock = 'kubernetes': {missing_package(error) or error}") from None
    return LeaseLock(config.plugin(NAME, KubernetesSettings), url)


@hookimpl
async def muster_survey(config: Config) -> "Survey | None":
    actor = _actor(config)
    return None if actor is None else await actor.survey()


@hookimpl
async def muster_transition(config: Config, transition: "Transition") -> "ActionOutcome | None":
    actor = _actor(config)
    return None if actor is None else await actor.act(transition)


@hookimpl
async def muster_node_health(config: Config, reports: "tuple[NodeHealthReport, ...]") -> bool:
    actor = _actor(config)
    if actor is not None:
        await actor.show_health(reports)
    return actor is not None


@hookimpl
async def muster_close(config: Config) -> None:
    actor = _actors.pop(config, None)
    if actor is not None:
        await actor.close()


def _actor(config: Config) -> "Actor | None":
    """The actor, if it is enabled. Raises Unavailable if a package that it needs is not installed."""
    settings = config.plugin(NAME, KubernetesSettings)
    if settings.actor.enabled and config not in _actors:
        try:
            from muster_plugins.schedulers.kubernetes.actor import Actor  # noqa: PLC0415 (memory, as above)
        except ImportError as error:
            raise Unavailable(missing_package(error) or str(error)) from None
        _actors[config] = Actor(settings)
    return _actors.get(config)


def _server(settings: KubernetesSettings) -> "ApiServer":
    from muster_plugins.schedulers.kubernetes.api import ApiServer, ServiceAccount  # noqa: PLC0415 (memory, as above)

    return ApiServer(ServiceAccount(settings.api, settings.service_account))


def _node(config: Config) -> str:
    """The name of this node in Kubernetes."""
    return config.plugin(NAME, KubernetesSettings).node or config.settings.node
