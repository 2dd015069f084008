"""The command `muster`. Its sub-commands come from entry points and are imported when they are used."""

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

import muster
from muster.errors import EX_USAGE, MusterError, Unavailable, unknown
from muster.terminal import for_terminal, say

GROUP = "muster.commands"


def _commands() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


class LazyGroup(TyperGroup):
    """A group whose members are entry points: an app with sub-commands of its own, or a function."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        point = _commands().get(cmd_name)
        return None if point is None else _command(point)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in _commands():
            raise MusterError(unknown("command", args[0], _commands()))
        return super().resolve_command(ctx, args)


def _command(point: EntryPoint) -> Any:
    try:
        loaded = point.load()
    except Exception as error:
        return _stand_in(point.name, f"{type(error).__name__}: {error}")
    if isinstance(loaded, typer.Typer):
        command: Any = get_group(loaded)
    else:
        single = typer.Typer(add_completion=False)
        single.command()(loaded)
        command = get_command(single)
    command.name = point.name
    return command


def _stand_in(name: str, reason: str) -> TyperCommand:
    """Takes the place of a command that cannot be imported, so that --help and the other commands go on working."""

    def refuse() -> None:
        raise Unavailable(f"{name} cannot be loaded: {reason} (all parts: pip install 'gpu-muster[agent,coordinator]')")

    any_arguments = {"ignore_unknown_options": True, "allow_extra_args": True}
    return TyperCommand(
        name, callback=refuse, help=for_terminal(f"Cannot be loaded: {reason}"), context_settings=any_arguments
    )


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    help="Keeps a fleet of GPU nodes fit for duty.",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(muster.__version__)
        raise typer.Exit


@app.callback()
def _muster(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Keeps a fleet of GPU nodes fit for duty."""


def main() -> None:
    """Runs the command line and exits: 64 for wrong usage, one line instead of a traceback for a known error."""
    try:
        code = get_command(app).main(prog_name="muster", standalone_mode=False)
    except MusterError as error:
        say(f"muster: {error}", file=sys.stderr)
        code = error.exit_code
    except typer.TyperException as error:
        if message := error.format_message():  # empty when the help was shown in its stead
            say(f"muster: {message} (see --help)", file=sys.stderr)
        code = EX_USAGE
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)
