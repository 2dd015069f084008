"""Finds plugins by entry point and calls their hooks. A broken plugin never affects the others.

pluggy's own multicall stops at the first implementation that raises, and its entry-point loader at the first plugin
that does not import. Here, every plugin is loaded and every implementation called separately, and failures are kept as
data. Any exception fails its plugin, including `SystemExit`. Two are passed on: Ctrl-C, and SettingsError, which the
operator must fix.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any

import pluggy
import structlog

from muster import hookspecs
from muster.check import AnyCheck, Check, DepartureProbe, IdleProbe, Reservation
from muster.config import Config
from muster.errors import MusterError, SettingsError, unknown
from muster.garbage import no_collection
from muster.model import MachineType
from muster.wire.messages import PluginInfo

GROUP = "muster"

_ITEMS: dict[str, type] = {
    "muster_checks": Check,
    "muster_machine_types": MachineType,
    "muster_departures": DepartureProbe,
    "muster_idle_probes": IdleProbe,
    "muster_reservations": Reservation,
}
"""The hooks that return any number of items, and the type of each item."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer of one plugin's hook: a value or an error. `is_misconfigured` if the operator must mend a setting."""

    plugin: str
    value: Any = None
    error: str | None = None
    is_misconfigured: bool = False


class Plugins:
    """The loaded plugins of one process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._infos: dict[str, PluginInfo] = {}
        self._skipped: list[PluginInfo] = []
        self._permit: Callable[[], Awaitable[None]] | None = None

    @property
    def infos(self) -> tuple[PluginInfo, ...]:
        """Every plugin that was found: loaded, disabled or failed, sorted by name."""
        return tuple(sorted([*self._infos.values(), *self._skipped], key=lambda info: info.name))

    @property
    def failed(self) -> tuple[PluginInfo, ...]:
        """The plugins that did not load."""
        return tuple(info for info in self.infos if info.status == "failed")

    def add(self, info: PluginInfo, load: Callable[[], Any]) -> None:
        """Registers what `load` returns. Any exception marks the plugin as failed."""
        if info.name in self._infos:
            error = f"another plugin of this name comes from {self._infos[info.name].distribution}"
            self.skip(info.model_copy(update={"status": "failed", "error": error}))
            return
        self._infos[info.name] = info
        try:
            loaded = load()
            self._register(info.name, loaded() if inspect.isclass(loaded) else loaded)
        except (Exception, SystemExit) as error:
            self.fail(info.name, _text(error))

    def skip(self, info: PluginInfo) -> None:
        """Records a plugin that is not loaded."""
        self._skipped.append(info)

    def fail(self, name: str, error: str) -> None:
        """Removes a plugin and keeps its error."""
        log.error("plugin_failed", plugin=name, error=error)
        self._infos[name] = self._infos[name].model_copy(update={"status": "failed", "error": error, "checks": ()})
        if self._manager.has_plugin(name):
            self._manager.unregister(name=name)

    def contribute(self, hook: str, **arguments: Any) -> list[HookAnswer]:
        """Calls a contribute hook of every plugin in turn; for a first-result hook, only until one answers.

        A plugin that raises is marked as failed and left out. SettingsError lists all wrong settings.
        """
        answers: list[HookAnswer] = []
        wrong_settings: list[str] = []
        for implementation in self._implementations(hook):
            name = implementation.plugin_name
            try:
                answers.append(HookAnswer(name, _contribution(hook, implementation, self.config, arguments)))
            except SettingsError as error:
                wrong_settings.append(str(error))
            except (Exception, SystemExit) as error:
                self.fail(name, _text(error))
            else:
                if answers[-1].value is not None and self._first_result_counts(hook):
                    break
        if wrong_settings:
            raise SettingsError("\n".join(wrong_settings))
        return answers

    async def call_each(self, hook: str, timeout_s: float, **arguments: Any) -> list[HookAnswer]:
        """Calls a notify hook of all plugins concurrently. Each has `timeout_s`, and none can disturb another."""
        await self._wait_for_permit()
        async with asyncio.TaskGroup() as calls:
            tasks = [
                calls.create_task(
                    _isolated(implementation, self.config, arguments, timeout_s),
                    name=f"{hook} of {implementation.plugin_name}",
                )
                for implementation in self._implementations(hook)
            ]
        return [task.result() for task in tasks]

    async def call_one(self, plugin: str, hook: str, timeout_s: float, **arguments: Any) -> HookAnswer:
        """Calls a notify hook of one plugin in the same way. The plugin must implement it."""
        await self._wait_for_permit()
        (implementation,) = (each for each in self._implementations(hook) if each.plugin_name == plugin)
        return await _isolated(implementation, self.config, arguments, timeout_s)

    @contextmanager
    def held_back_by(self, permit: Callable[[], Awaitable[None]]) -> Iterator[None]:
        """Inside the `with` block, no notify hook is called before `permit()` has returned."""
        self._permit = permit
        try:
            yield
        finally:
            self._permit = None

    async def _wait_for_permit(self) -> None:
        if self._permit is not None:
            await self._permit()

    def implementing(self, hook: str) -> tuple[str, ...]:
        """The plugins that implement a hook."""
        return tuple(implementation.plugin_name for implementation in self._implementations(hook))

    def record_checks(self, name: str, checks: Sequence[str]) -> None:
        """Notes the checks of a plugin for `infos`."""
        self._infos[name] = self._infos[name].model_copy(update={"checks": tuple(checks)})

    def _register(self, name: str, plugin: Any) -> None:
        self._manager.register(plugin, name=name)
        self._manager.check_pending()
        callers = self._manager.get_hookcallers(plugin)
        if not callers:
            raise TypeError("implements no hook: mark its functions with @muster.hookimpl")
        for caller in callers:
            for implementation in caller.get_hookimpls():
                _refuse_wrong_kind(caller.name, implementation)

    def _implementations(self, hook: str) -> Sequence[pluggy.HookImpl]:
        """The implementations in pluggy's order: tryfirst before others, later registered before earlier."""
        return list(reversed(getattr(self._manager.hook, hook).get_hookimpls()))

    def _first_result_counts(self, hook: str) -> bool:
        return bool(getattr(self._manager.hook, hook).spec.opts["firstresult"])


def load(config: Config, found: Iterable[EntryPoint] | None = None) -> Plugins:
    """Loads and configures every installed plugin. Raises SettingsError for a section that no plugin reads."""
    plugins = Plugins(config)
    disabled = config.settings.plugins.disabled
    for point in sorted(entry_points(group=GROUP) if found is None else found, key=lambda point: point.name):
        info = _info(point)
        if point.name in disabled:
            plugins.skip(info.model_copy(update={"status": "disabled"}))
        else:
            with no_collection():
                plugins.add(info, point.load)
    plugins.contribute("muster_configure")
    _refuse_unknown_names(plugins)
    _refuse_unclaimed_sections(plugins)
    return plugins


def collect_checks(plugins: Plugins) -> dict[str, AnyCheck]:
    """Every check of every plugin by name. A plugin with a check name that is taken fails as a whole."""
    checks: dict[str, AnyCheck] = {}
    for answer in plugins.contribute("muster_checks"):
        names = [check.name for check in answer.value]
        if len({*checks, *names}) < len(checks) + len(names):
            plugins.fail(answer.plugin, f"check names must be unique, and one of these is taken: {', '.join(names)}")
            continue
        checks.update(zip(names, answer.value, strict=True))
        plugins.record_checks(answer.plugin, names)
    return checks


def _refuse_unknown_names(plugins: Plugins) -> None:
    settings = plugins.config.settings.plugins
    names = {info.name for info in plugins.infos}
    strangers = [name for name in [*settings.disabled, *settings.sections] if name not in names]
    if strangers:
        raise SettingsError("\n".join(unknown("plugin", name, names) for name in strangers))


def _refuse_unclaimed_sections(plugins: Plugins) -> None:
    unclaimed = plugins.config.unclaimed()
    for info in plugins.infos:
        if info.status == "loaded" and info.name in unclaimed:
            raise SettingsError(f"unknown table [plugins.{info.name}]: this plugin has no settings")


def _info(point: EntryPoint) -> PluginInfo:
    name, version = (None, None) if point.dist is None else _origin(point.dist)
    return PluginInfo(name=point.name, distribution=name, version=version, status="loaded")


@functools.cache
def _origin(distribution: Distribution) -> tuple[str, str]:
    """Name and version. Each access to one of them parses all metadata again, README included."""
    return distribution.name, distribution.version


def _refuse_wrong_kind(hook: str, implementation: pluggy.HookImpl) -> None:
    if implementation.wrapper or implementation.hookwrapper:
        raise TypeError(f"{hook}: hook wrappers are not supported")
    if inspect.iscoroutinefunction(implementation.function) != (hook in hookspecs.NOTIFY):
        raise TypeError(f"{hook}: must be written with {'async def' if hook in hookspecs.NOTIFY else 'a plain def'}")


def _text(error: BaseException) -> str:
    """The error in one line. An error that is not meant for people is a bug, so the line names its class, too."""
    kind = "" if isinstance(error, MusterError) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".split())


def _contribution(hook: str, implementation: pluggy.HookImpl, config: Config, arguments: dict[str, Any]) -> Any:
    """The answer of an implementation. Iterables are consumed here, because a generator may raise late."""
    value = _call(implementation, config, arguments)
    kind = _ITEMS.get(hook)
    if kind is None:
        return value
    items = tuple(value or ())
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"{hook} gave {item!r}, which is not of type {kind.__name__}")
    return items


def _call(implementation: pluggy.HookImpl, config: Config, arguments: dict[str, Any]) -> Any:
    available = {"config": config, **arguments}
    return implementation.function(*(available[name] for name in implementation.argnames))


async def _isolated(
    implementation: pluggy.HookImpl, config: Config, arguments: dict[str, Any], timeout_s: float
) -> HookAnswer:
    name, is_misconfigured = implementation.plugin_name, False
    try:
        async with asyncio.timeout(timeout_s) as deadline:
            return HookAnswer(name, await _call(implementation, config, arguments))
    except asyncio.CancelledError as problem:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise  # the caller itself is cancelled
        error = _text(problem)
    except (Exception, SystemExit) as problem:
        error = f"no answer within {timeout_s:g} s" if deadline.expired() else _text(problem)
        is_misconfigured = isinstance(problem, SettingsError)
    log.error("plugin_call_failed", plugin=name, hook=implementation.function.__name__, error=error)
    return HookAnswer(name, error=error, is_misconfigured=is_misconfigured)
