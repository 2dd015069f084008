"""How the program `muster` starts: daemons without the libraries of the command line, everything else with them."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from muster import cli
from muster.errors import SettingsError, Unavailable
from muster.start import GROUP, exit_code

WRONG = {"MUSTER_CHECKS__NOPE__INTERVAL_S": "5", "MUSTER_STORE__NOPE": "1"}
"""An agent refuses the check, and a coordinator the setting."""


def started(*arguments: str, **variables: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """A call of `muster` that has ended, and the modules that it had imported by then."""
    program = (
        "import sys, atexit; sys.argv[0] = 'muster'\n"
        "atexit.register(lambda: print('\\n', *sys.modules, file=sys.stderr))\n"
        "from muster.start import main\nmain()"
    )
    environment = {**os.environ, **variables}
    called = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(called, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done, set(done.stderr.splitlines()[-1].split())


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("name", ["agent", "coordinator"])
def test_a_daemon_starts_without_the_command_line(name):
    """Its processes would keep what is imported for it; wrong settings are refused in the same way."""
    done, modules = started(name, **WRONG)
    assert done.returncode == 64
    assert "nope" in done.stderr.splitlines()[0]
    assert "muster.config" in modules
    assert not modules & {"typer", "click", "rich", "muster.cli"}


@pytest.mark.usefixtures("live")
def test_a_daemon_reads_the_settings_file_that_it_is_told(tmp_path):
    """By `--config`, or by the variable when there is no option."""
    told, known = tmp_path / "told.toml", tmp_path / "known.toml"
    told.write_text("in_the_option = 1\n")
    known.write_text("in_the_variable = 1\n")
    for arguments in (["agent", "--config", str(told)], ["agent", f"--config={told}"]):
        done, _ = started(*arguments, MUSTER_CONFIG=str(known))
        assert (done.returncode, "in_the_option" in done.stderr) == (64, True)
    done, modules = started("agent", MUSTER_CONFIG=str(known))
    assert (done.returncode, "in_the_variable" in done.stderr) == (64, True)
    assert "typer" not in modules


@pytest.mark.usefixtures("live")
def test_all_else_is_for_the_command_line():
    """The help of a daemon, too, and a command that there is not."""
    for arguments, code, said in ((["agent", "--help"], 0, "Usage: muster agent"), (["agents"], 64, "did you mean")):
        done, modules = started(*arguments)
        assert (done.returncode, said in done.stdout + done.stderr) == (code, True), arguments
        assert "typer" in modules


def test_every_daemon_is_a_command():
    """Which has the help and takes the options."""
    daemons = {point.name for point in entry_points(group=GROUP)}
    assert daemons == {"agent", "coordinator"}
    assert daemons <= cli._commands().keys()


def test_the_exit_code_says_how_a_command_ended(capsys):
    """A known error is printed in one line, a bug with its traceback."""

    def raises(error: BaseException) -> None:
        raise error

    assert exit_code(lambda: 2) == 2
    assert exit_code(lambda: None) == 0
    assert exit_code(lambda: raises(SettingsError("a: wrong"))) == 64
    assert exit_code(lambda: raises(Unavailable("b is gone"))) == 69
    assert exit_code(lambda: raises(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "muster: a: wrong\nmuster: b is gone\n"
    assert exit_code(lambda: raises(ZeroDivisionError("a bug"))) == 70
    assert "Traceback" in capsys.readouterr().err
