"""The command `muster`. Its sub-commands come from entry points and are imported when they are used.

`muster --help` shows a line of each sub-command, so it imports all their modules, but it builds none of their options:
that takes longer. A module of commands imports at its top only what its options need, and all else inside functions:
so the help, and every other command, start without the models and the libraries that one command needs.
"""

import functools
import inspect
import os
import sys
from importlib.metadata import EntryPoint, entry_points
from types import FunctionType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from muster.errors import EX_USAGE, MusterError, Unavailable, quoted, unknown
from muster.garbage import no_collection
from muster.start import INTERRUPTED, end_at_sigterm, exit_code
from muster.terminal import NOBODY_READS, for_terminal, say

GROUP = "muster.commands"

_NO_COLOUR = ("--no-colour", "--no-color")
_COMPLETION = {"--install-completion", "--show-completion"}


@functools.cache
def _commands() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


class _Group(TyperGroup):
    """A group that says which commands it has where one is unknown."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args and args[0] not in names:
            raise MusterError(unknown("command", args[0], names))
        return super().resolve_command(ctx, args)


class _Overview(_Group):
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


def _command(point: EntryPoint) -> Any:
    """The command with all its options, or what replaces it if it cannot be imported."""
    loaded = _loaded(point)
    if isinstance(loaded, TyperCommand):
        return loaded
    if isinstance(loaded, typer.Typer):
        loaded.info.cls = _Group
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
    end_at_sigterm()
    arguments = _colour_option_first(sys.argv[1:])
    code = exit_code(lambda: _run(arguments))
    if code == 1 and not _COMPLETION.isdisjoint(arguments):
        say("muster: completion works in bash, zsh and fish; run this in one of them", file=sys.stderr)
        code = EX_USAGE
    sys.exit(code)


def _run(arguments: list[str]) -> object:
    try:
        return get_command(app).main(arguments, prog_name="muster", standalone_mode=False)
    except typer.TyperException as error:
        return _explain(error)
    except typer.Abort:
        return INTERRUPTED
    except OSError:
        say()  # raises OutputFailed if it is stdout that cannot be written, to which rich has printed the help
        raise
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        return NOBODY_READS  # typer, and rich where it prints the help, exit with 1


def _colour_option_first(arguments: list[str]) -> list[str]:
    """The arguments with `--no-colour` moved to the place where the command itself takes it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    found = [argument for argument in arguments[:end] if argument in _NO_COLOUR]
    return [*found, *(argument for argument in arguments[:end] if argument not in _NO_COLOUR), *arguments[end:]]


def _explain(error: typer.TyperException) -> int:
    """Prints the error, or the help if a group was called alone. Returns the exit code."""
    if isinstance(error, typer.BadParameter) and type(error.__cause__).__name__ == "ValidationError":
        error.message = _refusal(error.__cause__)
    message = " ".join(error.format_message().split())  # typer lists choices in lines of their own
    if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it
        say(error.format_message(), end="")  # empty if rich has already printed the help
        return 0
    context = getattr(error, "ctx", None)
    say(f"muster: {message} (see {context.command_path if context else 'muster'} --help)", file=sys.stderr)
    return EX_USAGE


def _refusal(error: Any) -> str:
    """What is valid for the option that pydantic has refused, and what was given."""
    from muster.explain import what_is_valid  # noqa: PLC0415 (pydantic takes longer to import than most commands run)

    item = error.errors()[0]
    if item["type"] == "value_error":  # typer's own, for a choice: it repeats what was given
        return what_is_valid(item).rstrip(".")
    return f"{what_is_valid(item)} (got {quoted(item['input'])})"
