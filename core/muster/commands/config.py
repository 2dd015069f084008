"""`muster config`: the settings as they are in effect, and whether they are right."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import typer

from muster import logs, plugins
from muster.check import AnyCheck, judged_metrics, valid_params
from muster.commands.options import ConfigOption, JsonOption, load_settings
from muster.config import Config, Settings
from muster.errors import MusterError, SettingsError, unknown
from muster.reference_file import read_references
from muster.toml import to_toml

app = typer.Typer(help="Settings in effect.", no_args_is_help=True)

_PASSWORD_IN_URL = re.compile(r"(?<=://)([^:/@\s\"]*):[^@/\s\"]*@")


@app.command()
def show(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Prints the settings in effect: file, environment and defaults together. Of secrets only the file names."""
    settings = load_settings(config)
    text = settings.model_dump_json(indent=2) if as_json else to_toml(settings.model_dump(mode="json"))
    print(_PASSWORD_IN_URL.sub(r"\1:***@", text))


@app.command()
def check(config: ConfigOption = None) -> None:
    """Says whether file, environment, plugin tables, files and check parameters are right, and what is not."""
    settings = load_settings(config)
    logs.configure(settings.log)
    found = plugins.load(Config(settings))
    checks = plugins.collect_checks(found)
    complete = not found.failed
    problems = [*_missing_files(settings), *_wrong_checks(settings, checks, complete=complete)]
    problems += _wrong_references(settings, judged_metrics(checks) if complete else None)
    if problems:
        raise SettingsError("\n".join(problems))
    print("OK")


def _missing_files(settings: Settings) -> Iterator[str]:
    for table in ("broker", "http"):
        for key, value in getattr(settings, table):
            if isinstance(value, Path) and not (value.is_file() and os.access(value, os.R_OK)):
                yield f"setting '{table}.{key}': there is no file {value} that can be read"


def _wrong_references(settings: Settings, judged: Mapping[str, Collection[str]] | None) -> Iterator[str]:
    try:
        read_references(settings.references_file, judged)
    except SettingsError as error:
        yield str(error)


def _wrong_checks(settings: Settings, checks: dict[str, AnyCheck], *, complete: bool) -> Iterator[str]:
    """`complete` is false when a plugin has failed to load: then an unknown check may be one of its."""
    for name, wanted in settings.checks.items():
        if name in checks:
            try:
                valid_params(checks[name], wanted.params)
            except MusterError as error:
                yield str(error)
        elif complete:
            yield unknown("check", f"checks.{name}", [f"checks.{valid}" for valid in checks])
