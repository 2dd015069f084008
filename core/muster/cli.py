"""The command `muster`. Its sub-commands come from entry points and are imported when they are used."""

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import muster
from muster.errors import EX_USAGE, MusterError, unknown

GROUP = "muster.commands"


def _commands() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


class LazyGroup(TyperGroup):
    """A group whose members are entry points: an app with sub-commands of its own, or a function."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        point = _commands().get(cmd_name)
        return None if point is None else _load(point)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in _commands():
            raise MusterError(unknown("command", args[0], _commands()))
        return super().resolve_command(ctx, args)


def _load(point: EntryPoint) -> Any:
    loaded = point.load()
    if isinstance(loaded, typer.Typer):
        command = get_command(loaded)
    else:
        app = typer.Typer(add_completion=False)
        app.command()(loaded)
        command = get_command(app)
    command.name = point.name
    return command


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    help="Keeps a fleet of GPU nodes fit for duty.",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(muster.__version__)
        raise typer.Exit


@app.callback()
def _muster(version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True)) -> None:
    """Keeps a fleet of GPU nodes fit for duty."""


def main() -> None:
    """Runs the command line and exits: 64 for wrong usage, one line instead of a traceback for a known error."""
    try:
        code = get_command(app).main(prog_name="muster", standalone_mode=False)
    except MusterError as error:
        print(f"muster: {error}", file=sys.stderr)
        code = error.exit_code
    except typer.TyperException as error:
        print(f"muster: {error.format_message()} (see --help)", file=sys.stderr)
        code = EX_USAGE
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)
