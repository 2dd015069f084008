"""Options and arguments that several commands share, so that they look and behave the same everywhere.

`--config`, `--url` and `--token-file` say where something comes from: settings, or a coordinator. A command that needs
it takes it as its first parameter, and `options_of` gives the command the options:

    @app.command("list")
    @options_of(connect)                       # def connect(url: UrlOption = None, …) -> Client
    def list_(client: Client, as_json: JsonOption = False) -> None:
"""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

if TYPE_CHECKING:
    from muster.config import Settings

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", envvar="MUSTER_CONFIG", metavar="FILE", help="Settings file (TOML).", show_envvar=True),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON only.")]

CheckArgument = Annotated[str, typer.Argument(metavar="CHECK", help="Name of the check.")]

P = ParamSpec("P")
S = TypeVar("S")


def load_settings(config: ConfigOption = None) -> "Settings":
    """The settings from the file and the environment. Raises SettingsError with everything that is wrong."""
    from muster.config import load  # noqa: PLC0415 (the models take longer to import than a command without them runs)

    return load(config)


def options_of(source: Callable[..., S]) -> Callable[[Callable[Concatenate[S, P], None]], Callable[..., None]]:
    """Gives a command the options of `source`. The command's first parameter is what `source` returns for them."""
    options = inspect.signature(source).parameters

    def decorate(command: Callable[Concatenate[S, P], None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())[1:]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            command(source(**{name: given.pop(name) for name in options}), **given)  # type: ignore[call-arg]

        shown = [*own, *options.values()]
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)  # typer calls it with keyword arguments
                for parameter in shown
            ]
        )
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return run

    return decorate
