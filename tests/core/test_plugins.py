"""The loader: one broken plugin never hurts the others, and none fails in silence."""

import asyncio
import inspect
import itertools
import textwrap
from importlib.metadata import EntryPoint

import pytest

from muster import hookspecs, plugins
from muster.config import Config, PluginsSettings, Settings
from muster.errors import SettingsError
from muster.model import Inventory

CHECK = """
from muster import Check, Measurement, Params, Scope, Section, hookimpl

def one(name):
    return Check(name=name, summary="s", scope=Scope.NODE, params=Params, timeout_s=1,
                 measure=lambda params, context: Measurement(), judge=lambda measurement, references: [])
"""

GOOD = f"""{CHECK}
@hookimpl
def muster_checks(config):
    return [one("good")]
"""

_serial = itertools.count()


@pytest.fixture
def entry_point(tmp_path, monkeypatch):
    """Writes a module and returns an entry point that names it."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, source: str, attribute: str = "") -> EntryPoint:
        module = f"plugin_under_test_{next(_serial)}"
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        return EntryPoint(name, module + attribute, plugins.GROUP)

    return write


def config(**sections: object) -> Config:
    return Config(Settings(plugins=PluginsSettings.model_validate(sections)))


def state(loaded: plugins.Plugins) -> dict[str, str]:
    return {info.name: info.status for info in loaded.infos}


def error_of(loaded: plugins.Plugins, name: str) -> str:
    return next(info.error or "" for info in loaded.infos if info.name == name)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("raise RuntimeError('no driver')", "RuntimeError: no driver"),
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def broken(:", "SyntaxError: "),
        ("x = 1", "TypeError: implements no hook: mark its functions with @muster.hookimpl"),
        ("def muster_checks(config): ...", "TypeError: implements no hook"),
        (
            f"{CHECK}\n@hookimpl\ndef muster_checks(settings): ...",
            "Argument(s) {'settings'} are declared in the hookimpl",
        ),
        (f"{CHECK}\n@hookimpl\ndef muster_chekcs(config): ...", "PluginValidationError: unknown hook 'muster_chekcs'"),
        (
            f"{CHECK}\n@hookimpl\nasync def muster_checks(config): ...",
            "muster_checks: must be written with a plain def",
        ),
        (f"{CHECK}\n@hookimpl\ndef muster_result(run): ...", "muster_result: must be written with async def"),
        (f"{CHECK}\n@hookimpl(wrapper=True)\ndef muster_checks(config): yield", "hook wrappers are not supported"),
        (f"{CHECK}\n@hookimpl\ndef muster_configure(config): raise KeyError('gone')", "KeyError: 'gone'"),
        (f"{CHECK}\n@hookimpl\ndef muster_checks(config): raise SystemExit(1)", "SystemExit: 1"),
        (
            f"{CHECK}\n@hookimpl\ndef muster_checks(config):\n    yield one('a')\n    raise OSError('late')",
            "OSError: late",
        ),
        (
            f"{CHECK}\n@hookimpl\ndef muster_checks(config): return ['gemm']",
            "muster_checks gave 'gemm', which is not of type",
        ),
        (f"{CHECK}\n@hookimpl\ndef muster_checks(config): return 7", "TypeError: 'int' object is not iterable"),
        (f"{CHECK}\n@hookimpl\ndef muster_checks(config): return [one('a/b')]", "String should match pattern"),
        (f"{CHECK}\n@hookimpl\ndef muster_checks(config): return [one('b'), one('b')]", "check names must be unique"),
    ],
)
def test_a_broken_plugin_fails_alone(entry_point, source, error):
    """Every error of a plugin is kept in one line; the other plugins load and keep their checks."""
    loaded = plugins.load(config(), [entry_point("bad", source), entry_point("fine", GOOD)])
    assert list(plugins.collect_checks(loaded)) == ["good"]
    assert state(loaded) == {"bad": "failed", "fine": "loaded"}
    assert error in error_of(loaded, "bad")
    assert "\n" not in error_of(loaded, "bad")
    assert [info.name for info in loaded.failed] == ["bad"]


def test_ctrl_c_is_not_a_plugins_failure(entry_point):
    """A person who interrupts while plugins load means the process."""
    with pytest.raises(KeyboardInterrupt):
        plugins.load(config(), [entry_point("slow", "raise KeyboardInterrupt")])


def test_a_plugin_that_failed_is_asked_no_more(entry_point):
    """After its first failure, a plugin is not called again."""
    source = "@hookimpl\ndef muster_configure(config): raise OSError"
    loaded = plugins.load(config(), [entry_point("bad", f"{GOOD}\n{source}")])
    assert plugins.collect_checks(loaded) == {}


def test_a_class_is_called_without_arguments(entry_point):
    """An entry point may name a class, whose methods are the hooks."""
    source = f"{CHECK}\nclass Plugin:\n    @hookimpl\n    def muster_checks(self, config): return [one('classy')]"
    loaded = plugins.load(config(), [entry_point("classy", source, ":Plugin")])
    assert list(plugins.collect_checks(loaded)) == ["classy"]


def test_infos_name_the_checks_and_the_distribution():
    """What is installed tells where it comes from and what it brings."""
    loaded = plugins.load(config())
    plugins.collect_checks(loaded)
    gemm = next(info for info in loaded.infos if info.name == "gemm")
    assert (gemm.distribution, gemm.status, gemm.checks) == ("gpu-muster", "loaded", ("gemm",))


def test_a_check_name_that_is_taken_fails_the_plugin_that_comes_second(entry_point):
    """Two checks of the same name are never merged silently."""
    loaded = plugins.load(config(), [entry_point("one", GOOD), entry_point("two", GOOD)])
    assert list(plugins.collect_checks(loaded)) == ["good"]
    assert state(loaded) == {"one": "failed", "two": "loaded"}
    assert "one of these is taken: good" in error_of(loaded, "one")


def test_two_plugins_of_one_name(entry_point):
    """The first stays, the second is shown as failed."""
    loaded = plugins.load(config(), [entry_point("same", GOOD), entry_point("same", GOOD)])
    assert [(info.name, info.status) for info in loaded.infos] == [("same", "loaded"), ("same", "failed")]
    assert list(plugins.collect_checks(loaded)) == ["good"]


def test_a_disabled_plugin_is_not_imported(entry_point):
    """Disabled is a state of its own, and nothing of the plugin runs."""
    loaded = plugins.load(config(disabled=["off"]), [entry_point("off", "raise SystemExit"), entry_point("on", GOOD)])
    assert state(loaded) == {"off": "disabled", "on": "loaded"}


def test_names_that_no_plugin_has_are_refused(entry_point):
    """An unknown name in `disabled` or of a table is an error with the nearest name."""
    with pytest.raises(SettingsError) as caught:
        plugins.load(config(disabled=["fin"], fine2={}), [entry_point("fine", GOOD)])
    assert str(caught.value).splitlines() == [
        "unknown plugin 'fin'; did you mean 'fine'? (valid: fine)",
        "unknown plugin 'fine2'; did you mean 'fine'? (valid: fine)",
    ]


def test_a_table_that_its_plugin_does_not_read_is_refused(entry_point):
    """Settings that nobody reads are a mistake, not a comment."""
    with pytest.raises(SettingsError, match=r"unknown table \[plugins\.fine\]"):
        plugins.load(config(fine={"x": 1}), [entry_point("fine", GOOD)])


def test_wrong_settings_of_all_plugins_are_listed(entry_point):
    """Wrong settings stop the process at its start, with every mistake in one message."""
    section = f"{CHECK}\nclass Mine(Section):\n    size: int = 1\n@hookimpl\ndef muster_configure(config): "
    points = [entry_point(name, f"{section} config.plugin({name!r}, Mine)") for name in ("a", "b")]
    with pytest.raises(SettingsError) as caught:
        plugins.load(config(a={"size": "x"}, b={"sice": 1}), points)
    assert "plugins.a.size" in str(caught.value)
    assert "did you mean 'plugins.b.size'?" in str(caught.value)


def test_the_first_inventory_counts_and_ends_the_asking(entry_point):
    """One plugin that knows the devices is enough; those after it are not called."""
    hook = "from muster import Inventory, hookimpl\n@hookimpl\ndef muster_inventory(config): "
    bodies = {"a": "raise AssertionError", "b": "return Inventory(machine_type='b')", "c": "return None"}
    loaded = plugins.load(config(), [entry_point(name, hook + body) for name, body in bodies.items()])
    answers = loaded.contribute("muster_inventory")
    assert [(answer.plugin, answer.value) for answer in answers] == [("c", None), ("b", Inventory(machine_type="b"))]
    assert loaded.failed == ()


NOTIFIED = """
import asyncio
from muster import hookimpl
@hookimpl
async def muster_result(run):
    {body}
"""


@pytest.mark.looptime
async def test_notify_hooks_are_isolated_and_limited_in_time(entry_point, looptime):
    """One that raises, hangs, exits or cancels disturbs neither the others nor the caller, and all run side by side."""
    bodies = {
        "cancels": "raise asyncio.CancelledError",
        "exits": "raise SystemExit(1)",
        "fine": "await asyncio.sleep(4); return 'done'",
        "gives-up": "raise TimeoutError('the server was silent')",
        "lacks": "from muster.errors import Unavailable; raise Unavailable('the server is\\nnot there')",
        "hangs": "await asyncio.Event().wait()",
        "raises": "raise ValueError('no')",
    }
    loaded = plugins.load(config(), [entry_point(name, NOTIFIED.format(body=body)) for name, body in bodies.items()])
    answers = {answer.plugin: answer for answer in await loaded.call_each("muster_result", 5.0, run=None)}
    assert looptime == 5
    assert answers["fine"].value == "done"
    assert {name: answer.error for name, answer in answers.items() if answer.error} == {
        "cancels": "CancelledError:",
        "exits": "SystemExit: 1",
        "gives-up": "TimeoutError: the server was silent",
        "hangs": "no answer within 5 s",
        "lacks": "the server is not there",
        "raises": "ValueError: no",
    }


async def test_the_caller_of_notify_hooks_can_be_cancelled(entry_point):
    """A daemon that stops does not wait for its plugins."""
    loaded = plugins.load(config(), [entry_point("hangs", NOTIFIED.format(body="await asyncio.Event().wait()"))])
    calling = asyncio.create_task(loaded.call_each("muster_result", 60.0, run=None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling


def test_every_hook_is_of_one_kind():
    """Contribute hooks are plain functions, notify hooks are coroutines, and every hook is one of the two."""
    hooks = {name for name in vars(hookspecs) if name.startswith("muster_")}
    assert hooks == {*hookspecs.CONTRIBUTE, *hookspecs.NOTIFY}
    for name in hooks:
        assert inspect.iscoroutinefunction(getattr(hookspecs, name)) == (name in hookspecs.NOTIFY)
