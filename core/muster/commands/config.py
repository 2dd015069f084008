"""`muster config`: shows the settings in effect and checks them.

Each part checks its own settings through an entry point in the group `muster.config_checks`: a function `(config,
checks) -> Iterable[str]` that raises SettingsError, or returns lines for people. `checks` holds all checks by name; it
is None if a plugin has failed to load, because a check that seems unknown may belong to that plugin.

The help needs none of the imports inside the functions, and `show` imports plugins only if their tables are set.
"""

import json
import math
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import date, time
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from muster.commands.options import ConfigOption, JsonOption, load_settings, options_of
from muster.errors import MusterError, SettingsError, unknown
from muster.secrecy import HIDDEN, Masked, without_secrets
from muster.terminal import say

if TYPE_CHECKING:
    from muster.check import AnyCheck
    from muster.config import Config, Settings
    from muster.plugins import Plugins

app = typer.Typer(help="Settings: show and check them.", no_args_is_help=True)

GROUP = "muster.config_checks"

_AFTER_SCHEME = re.compile(r"(?<=:/).+", re.DOTALL)


@app.command()
@options_of(load_settings)
def show(settings: "Settings", as_json: JsonOption = False) -> None:
    """Print the settings in effect: file, environment and defaults together.

    The output is a settings file. A line with a secret is a comment, in which *** replaces the secret.
    URLs of plugins are hidden too: with the URL of a chat, anybody can post there.
    """
    from muster.toml import to_toml  # noqa: PLC0415 (see above)

    shown = settings.model_dump(mode="json", exclude={"plugins"})
    if "trust_loopback" not in settings.quarantine.model_fields_set:  # deprecated
        del shown["quarantine"]["trust_loopback"]
    tables = settings.plugins.sections  # in the form of the settings file, with times and infinities
    hidden = without_secrets(_without_urls(tables), _marked_secrets(settings))
    shown["plugins"] = {"disabled": list(settings.plugins.disabled), **hidden}
    table = without_secrets(shown)
    say(json.dumps(_as_json(table), indent=2) if as_json else to_toml(table))


def _marked_secrets(settings: "Settings") -> Collection[Any]:
    """The values that plugins mark as secret. `muster config check` reports errors in their tables."""
    from muster.config import Config  # noqa: PLC0415 (see above)

    config = Config(settings)
    if settings.plugins.sections:
        from muster import logs, plugins  # noqa: PLC0415 (see above)

        logs.configure(settings.log)
        with suppress(SettingsError):
            plugins.load(config)
    return config.secrets()


def _as_json(value: Any) -> Any:
    """The value without types that JSON lacks: times and infinities become texts."""
    match value:
        case dict():
            return {key: _as_json(item) for key, item in value.items()}
        case list():
            return list(map(_as_json, value))
        case date() | time():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
    return value


def _without_urls(value: Any) -> Any:
    """The content of a plugin's table, of any shape. In each URL, everything after the scheme is masked."""
    match value:
        case dict():
            return {key: _without_urls(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_urls(item) for item in value]
        case str():
            masked = _AFTER_SCHEME.sub(f"/{HIDDEN}", value)
            return value if masked == value else Masked(masked)
    return value


@app.command()
@options_of(load_settings)
def example(settings: "Settings") -> None:
    """Print a settings file in which every setting is a comment with its default.

    It has the tables of the plugins that are loaded here, too.
    """
    from muster import logs, plugins  # noqa: PLC0415 (see above)
    from muster.config import Config  # noqa: PLC0415 (see above)
    from muster.settings_example import settings_example  # noqa: PLC0415 (see above)

    logs.configure(settings.log)
    say(settings_example(plugins.load(Config(settings)).config.claimed), end="")


@app.command()
def check(config: ConfigOption = None) -> None:
    """Check settings, plugin tables, files and check parameters; say what is wrong."""
    from muster import logs, plugins  # noqa: PLC0415 (see above)
    from muster.config import Config  # noqa: PLC0415 (see above)

    settings = load_settings(config)
    logs.configure(settings.log)
    lines, problems = examined(settings, plugins.load(Config(settings)))
    if problems:
        raise SettingsError("\n".join(problems))
    say("\n".join([*lines, "OK"]))
    if config is None:  # a person who believes that a file was checked would trust the OK
        say(
            "muster: no settings file: this was the environment and the defaults; name one with --config",
            file=sys.stderr,
        )


def examined(settings: "Settings", found: "Plugins") -> tuple[list[str], list[str]]:
    """What there is to say about the settings, with these plugins: lines for people, and what is wrong."""
    from muster.check import judged_metrics  # noqa: PLC0415 (see above)
    from muster.plugins import collect_checks  # noqa: PLC0415 (see above)

    checks = collect_checks(found)
    complete = not found.failed
    problems = [*_missing_files(settings), *_wrong_checks(settings, checks, complete=complete)]
    problems += _wrong_references(settings, judged_metrics(checks) if complete else None)
    return _lines_of_parts(found.config, checks if complete else None, problems), problems


def _lines_of_parts(config: "Config", checks: "Mapping[str, AnyCheck] | None", problems: list[str]) -> list[str]:
    """The lines that the parts of muster return about their settings; their errors are added to `problems`."""
    lines: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            lines += point.load()(config, checks)
        except SettingsError as error:
            problems.append(str(error))
    return lines


def _missing_files(settings: "Settings") -> Iterator[str]:
    for table in ("broker", "http"):
        for key, value in getattr(settings, table):
            if isinstance(value, Path) and not (value.is_file() and os.access(value, os.R_OK)):
                yield f"setting '{table}.{key}': cannot read {value}"


def _wrong_references(settings: "Settings", judged: Mapping[str, Collection[str]] | None) -> Iterator[str]:
    from muster.reference_file import read_references  # noqa: PLC0415 (see above)

    try:
        read_references(settings.references_file, judged)
    except SettingsError as error:
        yield str(error)


def _wrong_checks(settings: "Settings", checks: "dict[str, AnyCheck]", *, complete: bool) -> Iterator[str]:
    """`complete` is false if a plugin has failed to load: an unknown check may belong to that plugin."""
    from muster.check import valid_params  # noqa: PLC0415 (see above)

    for name, wanted in settings.checks.items():
        if name in checks:
            try:
                valid_params(checks[name], wanted.params)
            except MusterError as error:
                yield str(error)
        elif complete:
            yield unknown("check", f"checks.{name}", [f"checks.{valid}" for valid in checks])
