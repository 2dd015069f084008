"""The command line as a process: exit codes and streams."""

import errno
import json
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint, version
from typing import Any

import psutil
import pytest
import typer
from typer.core import TyperCommand
from typer.main import get_command
from typer.testing import CliRunner

from muster import cli
from muster.errors import Unavailable


def test_version(muster):
    """The version is the distribution's."""
    assert muster("--version").stdout.strip() == version("gpu-muster")


def test_help_lists_every_command(muster):
    """Every entry point is a command and can be imported."""
    done = muster("--help")
    assert done.returncode == 0
    for command in ("agent", "check", "config", "coordinator", "demo", "node", "plugin", "sweep", "up"):
        assert f" {command} " in done.stdout
    assert "Cannot be loaded" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plugn", "list"], "muster: unknown command 'plugn'; did you mean 'plugin'? (valid: agent, "),
        (["--bogus"], "muster: No such option: --bogus"),
        (["plugin", "list", "surplus"], "muster: Got unexpected extra argument"),
        (["plugin", "lst"], "muster: unknown command 'lst'; did you mean 'list'? (valid: list"),
        (["config", "show", "--config", "/nowhere.toml"], "muster: settings: cannot read /nowhere.toml"),
        (
            ["demo", "--nodes", "x"],
            "muster: Invalid value for '--nodes': must be a valid integer (got 'x') (see muster demo --help)\n",
        ),
        (
            ["check", "run", "gemm", "--expect-gpus", "1000"],
            "'--expect-gpus': must be less than or equal to 128 (got '1000')",
        ),
        (
            ["doctor", "agnet"],
            "muster: Invalid value for 'ROLE': 'agnet' is not one of 'agent', 'coordinator' (see muster doctor --help)",
        ),
        (["doctor"], "muster: Missing argument 'ROLE'. Choose from: agent, coordinator (see muster doctor --help)\n"),
        (["sweep", "start"], "muster: --check: missing; name a check, for example collective; `muster check list`"),
        (["sweep", "start", "--check", "gemm", "--max-node-s", "nan"], "muster: one of the numbers is not finite"),
    ],
)
def test_wrong_usage_exits_with_64(muster, arguments, message):
    """One line on stderr says what was wrong; nothing comes on stdout."""
    done = muster(*arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_command_the_help_is_shown(muster):
    """`muster` alone, or a group of commands alone, explains itself on stdout: that is no error."""
    for group in ([], ["node"], ["sweep"], ["config"]):
        done = muster(*group)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Usage: {' '.join(['muster', *group])}" in done.stdout


def every_command() -> list[list[str]]:
    """The words of every command and every group."""
    found: list[list[str]] = [[]]
    for name in sorted(cli._commands()):
        command = cli._command(cli._commands()[name])
        found += [[name], *([name, inner] for inner in getattr(command, "commands", ()))]
    return found


def test_every_command_has_a_short_option_for_help():
    """`-h` says the same as `--help`."""
    assert len(every_command()) > 30
    for words in every_command():
        told = [CliRunner().invoke(cli.app, [*words, option], prog_name="muster") for option in ("-h", "--help")]
        assert [result.exit_code for result in told] == [0, 0], words
        assert told[0].output == told[1].output
        assert " ".join(["Usage: muster", *words]) in told[0].output


def test_common_options_are_the_same_everywhere():
    """A command that reads settings or calls a coordinator has all of them, with the same name, help and variable.

    The commands that read references take them from this machine without --url, and say so.
    """
    helps: dict[str, set[tuple[str, str, str]]] = {}
    for words in every_command():
        command: Any = get_command(cli.app)
        for word in words:
            command = command.get_command(None, word)
        for option in command.params:
            if option.name in ("config", "config_file", "url", "token_file", "as_json"):
                helps.setdefault(option.opts[0], set()).add((option.help, str(option.envvar), str(option.default)))
    assert {name: len(told) for name, told in helps.items()} == {
        "--config": 1, "--url": 2, "--token-file": 1, "--json": 1,
    }  # fmt: skip
    assert {text for text, *_ in helps["--url"]} == {
        "Address of the coordinator's API; default: http.listen.",
        "Address of the coordinator's API; default: references of this machine.",
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for_the_shell(muster, shell):
    """Of commands, groups and options."""
    done = muster(env={"_MUSTER_COMPLETE": f"source_{shell}"})
    assert done.returncode == 0
    assert "_MUSTER_COMPLETE" in done.stdout
    assert "--install-completion" in muster("--help").stdout


@pytest.mark.parametrize(
    ("line", "expected"), [("muster swe", "sweep"), ("muster node l", "list"), ("muster node list --wi", "--wide")]
)
def test_completion_knows_commands_and_options(muster, line, expected):
    """Also those that plugins and the coordinator bring."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = muster(env={"_MUSTER_COMPLETE": "complete_bash", **words})
    assert done.stdout.split() == [expected]


def test_no_colour_is_an_option(muster):
    """In both spellings, and at any place of the line."""
    for option in ("--no-colour", "--no-color"):
        assert muster(option, "--version").returncode == 0
        for place in range(4):
            words = ["plugin", "list", "--json"]
            words.insert(place, option)
            assert muster(*words).returncode == 0, words


def test_completion_that_is_not_possible_says_where_it_is(monkeypatch, capsys):
    """Wrong usage, with what would be right: typer says only that the shell is not supported."""
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("dash", "/bin/dash"))
    for option in ("--install-completion", "--show-completion"):
        monkeypatch.setattr(sys, "argv", ["muster", option])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 64
        assert "muster: completion works in bash, zsh and fish; run this in one of them" in capsys.readouterr().err


def test_every_argument_is_named_and_explained():
    """By what it is, such as NODE, in the same way everywhere; typer adds the brackets of usage lines itself."""
    named: dict[str, set[str]] = {}
    for words in every_command():
        command: Any = get_command(cli.app)
        for word in words:
            command = command.get_command(None, word)
        for argument in (each for each in command.params if each.param_type_name == "argument"):
            assert argument.help, words
            assert argument.metavar, words
            assert argument.metavar.isalpha(), words
            named.setdefault(argument.name, set()).add(argument.metavar)
    assert named["node"] == {"NODE"}
    assert all(len(metavars) == 1 for metavars in named.values())


def test_the_overview_says_what_each_command_says_of_itself():
    """It is made without the commands' options, and yet names the same help; also that of a plugin's command."""
    for name, point in cli._commands().items():
        assert cli._summary(point).help.splitlines()[0] == cli._command(point).help.splitlines()[0], name


def test_a_command_that_does_not_carry_its_help_is_built_for_the_overview(monkeypatch):
    """Such as an app whose help stands at its callback."""
    plugins_app = typer.Typer()
    plugins_app.callback()(_callback_with_help)
    monkeypatch.setattr(cli, "_loaded", lambda _: plugins_app)
    assert cli._summary(EntryPoint("theirs", "theirs:app", cli.GROUP)).help == "Help at the callback."


def _callback_with_help() -> None:
    """Help at the callback."""


def test_a_command_that_cannot_be_imported_refuses_alone():
    """A missing extra makes only its own command unavailable, with the reason."""
    command = cli._command(EntryPoint("sweep", "module_that_is_not_there:app", cli.GROUP))
    assert "No module named 'module_that_is_not_there'" in command.help
    with pytest.raises(Unavailable, match=r"sweep cannot be loaded: ModuleNotFoundError: .*pip install"):
        command.main(["list", "--json"], standalone_mode=False)


def test_plugin_list(muster):
    """The built-in plugins are listed as anybody else's, with what they bring."""
    done = muster("plugin", "list", "--json")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert answer["next_cursor"] is None
    by_name = {item["name"]: item for item in answer["items"]}
    assert set(by_name) >= {"collective", "gemm", "nvml", "simulated", "training"}
    assert by_name["gemm"] == {
        "name": "gemm",
        "distribution": "gpu-muster",
        "version": version("gpu-muster"),
        "status": "loaded",
        "error": None,
        "checks": ["gemm"],
    }


def test_plugin_list_for_people(muster):
    """Without --json there is one aligned line for each plugin."""
    done = muster("plugin", "list", env={"MUSTER_PLUGINS__DISABLED": '["gemm"]'})
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["NAME", "DISTRIBUTION", "VERSION", "STATUS", "CHECKS", "ERROR"]
    assert ["gemm", "gpu-muster", version("gpu-muster"), "disabled", "-"] in [line.split() for line in lines]


def test_plugin_list_refuses_wrong_settings(muster):
    """A plugin that is disabled under a name that none has is wrong usage."""
    done = muster("plugin", "list", env={"MUSTER_PLUGINS__DISABLED": '["gem"]'})
    assert done.returncode == 64
    assert "did you mean 'gemm'?" in done.stderr


def with_command(monkeypatch, function):
    """Makes `muster broken` call the function."""
    monkeypatch.setattr(cli, "_command", lambda _: TyperCommand("broken", callback=function))
    monkeypatch.setattr(cli, "_commands", lambda: {"broken": EntryPoint("broken", "nowhere:broken", cli.GROUP)})
    monkeypatch.setattr(sys, "argv", ["muster", "broken"])


def test_a_bug_does_not_end_like_a_verdict(monkeypatch, capsys):
    """Its traceback is shown, and the exit code is that of sysexits.h: 1 would mean WARN."""

    def broken() -> None:
        raise ZeroDivisionError("a bug")

    with_command(monkeypatch, broken)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 70
    assert "Traceback" in capsys.readouterr().err


def test_output_that_nobody_reads_does_not_end_like_a_verdict(monkeypatch):
    """As where a shell's `head` has read enough: the exit code is that of the signal that ends other programs."""

    def unread() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    with_command(monkeypatch, unread)
    for stream in ("stdout", "stderr"):  # typer replaces them
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 141


@pytest.mark.usefixtures("live")
def test_sigterm_ends_the_first_process_of_a_container_while_it_starts():
    """The kernel drops signals for which that process has no handler."""
    program = (
        "import sys, time\nfrom muster import cli\n"
        "def start(*_, **__):\n    print('starts', flush=True)\n    time.sleep(60)\n"
        "cli.get_command = lambda _: type('Command', (), {'main': start})\n"
        "cli.main()"
    )
    first_of_its_own = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    with subprocess.Popen([*first_of_its_own, sys.executable, "-c", program], stdout=subprocess.PIPE) as outside:
        try:
            assert outside.stdout
            assert outside.stdout.readline() == b"starts\n"
            (first,) = psutil.Process(outside.pid).children()
            first.terminate()
            assert outside.wait(20) == 128 + signal.SIGTERM
        finally:
            outside.kill()
