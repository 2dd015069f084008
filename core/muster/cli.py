"""The command `muster`. Its sub-commands come from entry points and are imported when they are used.

`muster --help` shows a line of each sub-command, so it imports all their modules, but it builds none of their options:
that takes longer. A module of commands imports at its top only what its options need, and all else inside functions:
so the help, and every other command, start without the models and the libraries that one command needs.
"""

import functools
import inspect
import os
import signal
import sys
from importlib.metadata import EntryPoint, entry_points
from types import FunctionType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from muster.errors import EX_SOFTWARE, EX_USAGE, MusterError, Unavailable, unknown
from muster.garbage import no_collection
from muster.terminal import for_terminal, say

GROUP = "muster.commands"

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
_NOBODY_READS = 128 + signal.SIGPIPE
_OF_A_CLOSED_PIPE = "PacifyFlushWrapper"
"""The object that typer puts in place of stdout when the reader of the output is gone, before it exits with 1."""

_NO_COLOUR = ("--no-colour", "--no-color")
_COMPLETION = {"--install-completion", "--show-completion"}


@functools.cache
def _commands() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


class _Overview(TyperGroup):
    """What the help of `muster` shows: the commands with their help, but without their options."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _summary(_commands()[cmd_name])


class LazyGroup(_Overview):
    """A group whose members are entry points: an app with sub-commands of its own, or a function."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        point = _commands().get(cmd_name)
        return None if point is None else _command(point)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        overview = _Overview(name=self.name, params=self.params, help=self.help, rich_markup_mode=self.rich_markup_mode)
        overview.format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in _commands():
            raise MusterError(unknown("command", args[0], _commands()))
        return super().resolve_command(ctx, args)


def _command(point: EntryPoint) -> Any:
    """The command with all its options, or what replaces it if it cannot be imported."""
    loaded = _loaded(point)
    if isinstance(loaded, TyperCommand):
        return loaded
    if isinstance(loaded, typer.Typer):
        command: Any = get_group(loaded)
    else:
        single = typer.Typer(add_completion=False)
        single.command()(loaded)
        command = get_command(single)
    command.name = point.name
    return command


def _summary(point: EntryPoint) -> Any:
    """The command's name and help; the whole command if its help is not written where it is defined."""
    match _loaded(point):
        case typer.Typer(info=info) if isinstance(info.help, str):
            return TyperCommand(point.name, help=info.help)
        case FunctionType() as function:
            return TyperCommand(point.name, help=inspect.getdoc(function))
    return _command(point)


def _loaded(point: EntryPoint) -> Any:
    """The object of the entry point: an app or a function; a stand-in if it cannot be imported."""
    try:
        with no_collection():
            return point.load()
    except Exception as error:
        return _stand_in(point.name, f"{type(error).__name__}: {error}")


def _stand_in(name: str, reason: str) -> TyperCommand:
    """Replaces a command that cannot be imported. The other commands and --help keep working."""

    def refuse() -> None:
        raise Unavailable(f"{name} cannot be loaded: {reason} (all parts: pip install 'gpu-muster[agent,coordinator]')")

    any_arguments = {"ignore_unknown_options": True, "allow_extra_args": True}
    return TyperCommand(
        name, callback=refuse, help=for_terminal(f"Cannot be loaded: {reason}"), context_settings=any_arguments
    )


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # sub-commands inherit them
    help="Keeps a fleet of GPU nodes fit for duty.",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from muster.version import __version__  # noqa: PLC0415 (reading it takes longer than most commands need)

        say(__version__)
        raise typer.Exit


def _no_colour(wanted: bool) -> None:
    if wanted:
        os.environ["NO_COLOR"] = "1"  # child processes inherit it


@app.callback()
def _muster(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    no_colour: Annotated[
        bool,
        typer.Option(
            *_NO_COLOUR,
            callback=_no_colour,
            is_eager=True,
            help="Print no colours, like NO_COLOR; may stand anywhere in the line.",
        ),
    ] = False,
) -> None:
    """Keeps a fleet of GPU nodes fit for duty."""


def main() -> None:
    """Runs the command line and exits: 64 for wrong usage, one line instead of a traceback for a known error.

    A bug ends with its traceback and 70. Neither it nor a closed pipe may end with 1, which means WARN.
    """
    _end_at_sigterm()
    arguments = _colour_option_first(sys.argv[1:])
    try:
        code = get_command(app).main(arguments, prog_name="muster", standalone_mode=False)
    except MusterError as error:
        say(f"muster: {error}", file=sys.stderr)
        code = error.exit_code
    except typer.TyperException as error:
        code = _explain(error)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except SystemExit:
        if type(sys.stdout).__name__ != _OF_A_CLOSED_PIPE:
            raise
        code = _NOBODY_READS
    except Exception:
        sys.excepthook(*sys.exc_info())
        code = EX_SOFTWARE
    if code == 1 and not _COMPLETION.isdisjoint(arguments):
        say("muster: completion works in bash, zsh and fish; run this in one of them", file=sys.stderr)
        code = EX_USAGE
    sys.exit(code if isinstance(code, int) else 0)


def _end_at_sigterm() -> None:
    """Lets SIGTERM end the first process of a container, too, before a daemon handles it in its own way.

    The kernel drops a signal for that process as long as it has no handler, so a pod that is deleted while it starts
    would be killed only after its grace period.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


def _colour_option_first(arguments: list[str]) -> list[str]:
    """The arguments with `--no-colour` moved to the place where the command itself takes it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    found = [argument for argument in arguments[:end] if argument in _NO_COLOUR]
    return [*found, *(argument for argument in arguments[:end] if argument not in _NO_COLOUR), *arguments[end:]]


def _explain(error: typer.TyperException) -> int:
    """Prints the error, or the help if a group was called alone. Returns the exit code."""
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it
        say(message, end="")  # empty if rich has already printed the help
        return 0
    context = getattr(error, "ctx", None)
    say(f"muster: {message} (see {context.command_path if context else 'muster'} --help)", file=sys.stderr)
    return EX_USAGE
