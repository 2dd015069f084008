"""What `muster doctor coordinator` looks at: the coordinator itself, the broker, the database, and the actors."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import aiomqtt

from muster.broker_check.behaviour import latency, strangers
from muster.broker_check.connection import Account, BrokerAnswer
from muster.config import Settings
from muster.doctor.broker import way_to_broker
from muster.doctor.certificates import certificates
from muster.doctor.clock import clock
from muster.doctor.disk import disk
from muster.doctor.process import answer_of
from muster.doctor.setup_finding import SetupFinding
from muster.errors import MusterError
from muster.model import Verdict
from muster.nouns import count
from muster.plugins import HookAnswer, Plugins
from muster.transition import Survey
from muster_coordinator.runtime.actor_poller import HOOK, TIMEOUT_S
from muster_coordinator.store.disk_budget import GB
from muster_coordinator.store.examination import examined

CLOSING_S = 2.0

LITTLE_BYTES = 1e7
"""What the coordinator writes on this host if its database is elsewhere."""


async def examine(settings: Settings, plugins: Plugins) -> AsyncIterator[SetupFinding]:
    """All that the coordinator needs on this host. A running coordinator is not disturbed."""
    running = answer_of(settings.http.listen, "/readyz")
    yield _of_coordinator(settings.http.listen, running)
    async for finding in _of_broker(settings, is_connected=(running or {}).get("status") == "ok"):
        yield finding
    yield clock()
    async for finding in _of_storage(settings):
        yield finding
    async for finding in _of_actors(settings, plugins):
        yield finding


def _of_coordinator(listen: str, ready: dict[str, object] | None) -> SetupFinding:
    match ready:
        case None:
            text = f"no coordinator answers at {listen}; start it when the rest is well"
            return SetupFinding("coordinator", Verdict.WARN, text)
        case {"status": "ok"}:
            return SetupFinding("coordinator", Verdict.PASS, "it runs, with its broker and its database")
        case {"status": "standby", "leader": str(leader)}:
            return SetupFinding("coordinator", Verdict.PASS, f"it stands by; {leader} leads")
        case {"status": "standby"}:
            return SetupFinding("coordinator", Verdict.WARN, "it stands by, and nobody leads; its log says why")
        case {"detail": detail}:
            return SetupFinding("coordinator", Verdict.FAIL, f"it runs, and is not ready: {detail}")
    return SetupFinding("coordinator", Verdict.FAIL, f"something else answers at {listen}; set another http.listen")


async def _of_broker(settings: Settings, *, is_connected: bool) -> AsyncIterator[SetupFinding]:
    if settings.broker.url is None:
        text = "none is set: the coordinator starts its own, which is for one host"
        yield SetupFinding("broker", Verdict.PASS, text)
        return
    for finding in certificates(settings.broker, settings.broker.url, time.time()):
        yield finding
    async for finding in way_to_broker(
        settings.broker, settings.fleet, "the coordinator", _trials, is_connected=is_connected
    ):
        yield finding


def _trials(account: Account) -> Iterable[Awaitable[SetupFinding]]:
    yield _tried("latency", latency, account)
    yield _tried("access", strangers, account)


async def _tried(check: str, need: Callable[[Account], Awaitable[BrokerAnswer]], account: Account) -> SetupFinding:
    try:
        return SetupFinding(check, *await need(account))
    except (aiomqtt.MqttError, OSError, TimeoutError) as error:
        return SetupFinding(check, Verdict.FAIL, f"the connection was lost: {error}; `muster broker check` says more")


async def _of_storage(settings: Settings) -> AsyncIterator[SetupFinding]:
    try:
        found, used = await examined(settings)
    except MusterError as error:
        yield SetupFinding("database", Verdict.FAIL, str(error))
        return
    yield found
    is_here = settings.store.url is None or settings.store.url.startswith("sqlite")
    more = max(0.0, settings.store.max_gb * GB - used) if is_here else LITTLE_BYTES
    yield disk(settings.data_dir, more, "the database" if is_here else "the coordinator")


async def _of_actors(settings: Settings, plugins: Plugins) -> AsyncIterator[SetupFinding]:
    is_enforced = settings.quarantine.mode == "enforce"
    answers = [answer for answer in await plugins.call_each(HOOK, TIMEOUT_S) if answer.value or answer.error]
    await plugins.call_each("muster_close", CLOSING_S)
    for answer in answers:
        yield _of_actor(answer, is_enforced=is_enforced)
    if not any(isinstance(answer.value, Survey) and answer.value.can_cordon for answer in answers):
        text = "none can drain nodes; enable one, for example plugins.kubernetes.actor.enabled = true"
        verdict = Verdict.FAIL if is_enforced else Verdict.PASS
        yield SetupFinding("actors", verdict, f"quarantine.mode is {settings.quarantine.mode}, and {text}")


def _of_actor(answer: HookAnswer, *, is_enforced: bool) -> SetupFinding:
    check, bad = f"actor {answer.plugin}", Verdict.FAIL if is_enforced else Verdict.WARN
    if not isinstance(answer.value, Survey):
        return SetupFinding(check, bad, answer.error or "its answer is no survey; mend the plugin")
    survey = answer.value
    if survey.problem is not None:
        return SetupFinding(check, bad, survey.problem)
    does = "can drain them" if survey.can_cordon else "only notifies"
    return SetupFinding(check, Verdict.PASS, f"{survey.summary}: lists {count(len(survey.nodes), 'node')}, {does}")
