"""Finds plugins by entry point and calls their hooks, so that one broken plugin never hurts the others.

pluggy's own multicall stops at the first implementation that raises, and its entry-point loader at the first that does
not import. Here every plugin is loaded, and every implementation called, on its own; what failed is kept as data.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy
import structlog

from muster import hookspecs
from muster.check import AnyCheck
from muster.config import Config
from muster.errors import SettingsError, unknown
from muster.wire.messages import PluginInfo

GROUP = "muster"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Answer:
    """What one plugin's implementation of a hook gave: a value or an error."""

    plugin: str
    value: Any = None
    error: str | None = None


class Plugins:
    """The loaded plugins of one process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._infos: dict[str, PluginInfo] = {}

    @property
    def infos(self) -> tuple[PluginInfo, ...]:
        """Every plugin that was found, whether it is loaded, disabled or failed, by name."""
        return tuple(self._infos[name] for name in sorted(self._infos))

    @property
    def failed(self) -> tuple[PluginInfo, ...]:
        """The plugins that did not load."""
        return tuple(info for info in self.infos if info.status == "failed")

    def add(self, info: PluginInfo, load: Callable[[], Any]) -> None:
        """Registers what `load` returns; whatever it raises marks the plugin as failed."""
        self._infos[info.name] = info
        try:
            plugin = load()
            self._manager.register(plugin() if inspect.isclass(plugin) else plugin, name=info.name)
            self._manager.check_pending()
        except Exception as error:
            self._fail(info.name, error)

    def skip(self, info: PluginInfo) -> None:
        """Records a plugin that the settings disable."""
        self._infos[info.name] = info

    def contribute(self, hook: str, **arguments: Any) -> list[Answer]:
        """Calls a contribute hook of every plugin in turn. One that raises is marked as failed and left out."""
        answers = []
        for implementation in self._implementations(hook):
            name = implementation.plugin_name
            try:
                answers.append(Answer(name, _call(implementation, self.config, arguments)))
            except SettingsError:
                raise
            except Exception as error:
                self._fail(name, error)
        return answers

    async def call_each(self, hook: str, timeout_s: float, **arguments: Any) -> list[Answer]:
        """Calls a notify hook of every plugin side by side; each has `timeout_s` and none can disturb another."""
        implementations = self._implementations(hook)
        return await asyncio.gather(
            *(_isolated(implementation, self.config, arguments, timeout_s) for implementation in implementations)
        )

    def _implementations(self, hook: str) -> Sequence[pluggy.HookImpl]:
        """In the order of pluggy's own calls: tryfirst before others, later registered before earlier."""
        return list(reversed(getattr(self._manager.hook, hook).get_hookimpls()))

    def _fail(self, name: str, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        log.error("plugin_failed", plugin=name, error=text)
        self._infos[name] = self._infos[name].model_copy(update={"status": "failed", "error": text})
        if self._manager.has_plugin(name):
            self._manager.unregister(name=name)


def load(config: Config, found: Iterable[EntryPoint] | None = None) -> Plugins:
    """Loads and configures every installed plugin; SettingsError when a section of the settings is nobody's."""
    plugins = Plugins(config)
    disabled = config.settings.plugins.disabled
    for point in sorted(entry_points(group=GROUP) if found is None else found, key=lambda point: point.name):
        info = _info(point)
        if point.name in disabled:
            plugins.skip(info.model_copy(update={"status": "disabled"}))
        else:
            plugins.add(info, point.load)
    names = {info.name for info in plugins.infos}
    for name in [*disabled, *config.settings.plugins.sections]:
        if name not in names:
            raise SettingsError(unknown("plugin", name, names))
    plugins.contribute("muster_configure")
    return plugins


def collect_checks(plugins: Plugins) -> dict[str, AnyCheck]:
    """Every check of every plugin, by name; of two with one name the first stays, and that is logged."""
    checks: dict[str, AnyCheck] = {}
    for answer in plugins.contribute("muster_checks"):
        for check in answer.value or ():
            if check.name in checks:
                log.error("check_name_taken", check=check.name, plugin=answer.plugin)
                continue
            checks[check.name] = check
    return checks


def _info(point: EntryPoint) -> PluginInfo:
    distribution = point.dist
    return PluginInfo(
        name=point.name,
        distribution=distribution.name if distribution else None,
        version=distribution.version if distribution else None,
        status="loaded",
    )


def _call(implementation: pluggy.HookImpl, config: Config, arguments: dict[str, Any]) -> Any:
    available = {"config": config, **arguments}
    return implementation.function(*(available[name] for name in implementation.argnames))


async def _isolated(
    implementation: pluggy.HookImpl, config: Config, arguments: dict[str, Any], timeout_s: float
) -> Answer:
    name = implementation.plugin_name
    try:
        async with asyncio.timeout(timeout_s):
            return Answer(name, await _call(implementation, config, arguments))
    except TimeoutError:
        error = f"no answer within {timeout_s:g} s"
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    log.error("plugin_call_failed", plugin=name, hook=implementation.function.__name__, error=error)
    return Answer(name, error=error)
