"""The manual pages: muster(1) from the command line, muster.toml(5) from the settings."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import typer
from typer.main import get_command

from muster import cli, plugins
from muster.config import Config, Settings
from muster.model_fields import ModelField
from muster.settings_example import every_setting
from muster.version import __version__

_NOTE = '.\\" Generated from the code by `make docs`; edit the code instead.'

_SYNOPSIS = r"""
.SH SYNOPSIS
.B muster
.RI [ OPTION ]...
.I COMMAND
.RI [ ARGUMENT ]...
"""

_DESCRIPTION = r"""
.SH DESCRIPTION
muster finds the bad node or link in a fleet of GPU nodes, takes it out of scheduling, and brings it back when it works
again.
An agent runs on every node
.RB ( "muster agent" ),
one coordinator collects what they find
.RB ( "muster coordinator" ).
.B muster up
runs both on one machine,
.B muster init
writes the configuration of a fleet, and
.B muster doctor
says what is missing.
"""

_END = r"""
.SH EXIT STATUS
.B muster check run
and
.B muster sweep start \-\-wait
exit with the verdict: 0 for PASS or SKIPPED, 1 for WARN, 2 for FAIL, 3 for UNKNOWN.
All commands:
.TP
.B 0
Success.
.TP
.B 64
Wrong usage, or wrong settings.
.TP
.B 69
Something that is needed cannot be reached, such as the coordinator, or is not installed.
.TP
.B 70
A bug in muster; the traceback is on stderr.
.TP
.B 74
The coordinator cannot write its database any more.
.TP
.B 130, 141, 143
Ended by Ctrl\-C, by a closed pipe, or by SIGTERM.
.SH ENVIRONMENT
.TP
.B MUSTER_CONFIG
The settings file, as with
.BR \-\-config .
.TP
.B MUSTER_URL
The address of the coordinator's API, as with
.BR \-\-url .
.TP
.BI MUSTER_ KEY
A setting; it overrides the settings file.
.B MUSTER_HTTP__LISTEN
is
.I listen
in the table
.IR [http] .
.TP
.B NO_COLOR
If set, nothing is printed in colours.
.SH FILES
.TP
.I /etc/muster/muster.toml
The settings file of the systemd units.
.TP
.I /var/lib/muster
What the agent and the coordinator of the systemd units store.
.SH SEE ALSO
.BR muster.toml (5)
"""

_SETTINGS = r"""
.SH NAME
muster.toml \- settings of muster
.SH DESCRIPTION
The settings of agent, coordinator and commands, in TOML; each reads what it needs.
Without
.B \-\-config
or
.B MUSTER_CONFIG
there is no settings file, and all settings have their defaults.
The environment overrides the file.
.I <name>
stands for a name that you choose.
.PP
.B muster config check
says what is wrong,
.B muster config show
what is in effect;
.B muster config example
prints a file with every setting as a comment.
.SH SETTINGS
"""


def muster_1() -> str:
    """The page of the command line, with every command and option."""
    root: Any = get_command(cli.app)
    context = typer.Context(root, info_name="muster")
    name = f".SH NAME\nmuster \\- {_text(root.help[0].lower() + root.help[1:].rstrip('.'))}"
    options = [".SH OPTIONS", *_options(root)]
    commands = [".SH COMMANDS", *_commands(root, context)]
    return _page("MUSTER 1", [name + _SYNOPSIS.rstrip() + _DESCRIPTION.rstrip(), *options, *commands, _END.strip()])


def muster_toml_5() -> str:
    """The page of the settings file, with every setting."""
    config = Config(Settings())
    plugins.load(config)
    lines = [_SETTINGS.strip()]
    by_table = sorted(every_setting(config.claimed), key=_table_of)  # in each table, the order of the code
    for table, settings in groupby(by_table, key=_table_of):
        lines.append(f".SS {_text(f'[{table}]') if table else 'Above all tables'}")
        lines += map(_setting, settings)
    return _page("MUSTER.TOML 5", [*lines, ".SH SEE ALSO\n.BR muster (1)"])


def _page(title: str, blocks: list[str]) -> str:
    return "\n".join([_NOTE, f'.TH {title} "" "muster {__version__}" "muster"', *blocks]) + "\n"


def _commands(group: Any, context: typer.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from _commands(command, inner)
            continue
        arguments = [_argument(each) for each in command.params if each.param_type_name == "argument"]
        yield f'.SS "{" ".join([_text(inner.command_path), *arguments])}"'
        yield "\n.PP\n".join(map(_text, (command.help or "").split("\n\n")))
        yield from _options(command)


def _argument(argument: Any) -> str:
    name = f"\\fI{_text(argument.metavar)}\\fB"
    many = f"{name}..." if argument.nargs != 1 else name
    return many if argument.required else f"[{many}]"


def _options(command: Any) -> Iterator[str]:
    for each in command.params:
        if each.param_type_name == "argument":
            yield f".TP\n.I {_text(each.metavar)}\n{_text(each.help or '')}"
            continue
        value = "" if each.is_flag else f" \\fI{_text(each.metavar or each.opts[0].lstrip('-').upper())}\\fR"
        names = ", ".join(f"\\fB{_text(name)}\\fR" for name in each.opts)
        repeated = " May be given several times." if each.multiple else ""
        yield f".TP\n{names}{value}\n{_text(each.help or '')}{repeated}"


def _table_of(field: ModelField) -> str:
    return field.key.rpartition(".")[0]


def _setting(field: ModelField) -> str:
    default = "required" if field.is_required else "" if field.default is None else json.dumps(field.default)
    name = f".TP\n\\fB{_text(field.key.rpartition('.')[2])}\\fR = \\fI{_text(field.type_text)}\\fR"
    return f"{name}\n{_text(field.description)}" + (f"\n.br\nDefault: {_text(default)}" if default else "")


def _text(text: str) -> str:
    """The text with what troff would take for its own; no line of it begins with a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("…", "...")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.splitlines())
