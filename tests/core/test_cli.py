"""The command line as a process: exit codes, streams, and what it imports."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint, version

import pytest

from muster import cli
from muster.errors import Unavailable

HEAVY = {"aiohttp", "aiomqtt", "alembic", "amqtt", "pynvml", "sqlalchemy", "torch"}


def imported_by(*arguments: str) -> set[str]:
    """The top-level modules that a call of the command line has imported when it ends."""
    program = (
        "import sys, atexit; sys.argv[0] = 'muster'\n"
        "atexit.register(lambda: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr))\n"
        "from muster.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split())


@pytest.mark.usefixtures("live")
def test_version_is_quick():
    """`--version` imports no command and none of the heavy libraries."""
    modules = imported_by("--version")
    assert not modules & HEAVY
    assert not modules & {"muster_agent", "muster_coordinator", "muster_plugins"}


@pytest.mark.usefixtures("live")
def test_plugin_commands_import_no_heavy_library():
    """Plugins are loaded without torch and the driver: these belong to children."""
    assert not imported_by("plugin", "list") & {"torch", "pynvml", "sqlalchemy", "amqtt"}


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("command", ["baseline", "node", "quarantine", "reference", "sweep"])
def test_commands_that_ask_a_coordinator_import_nothing_that_only_it_needs(command):
    """They would take half as long again to start."""
    assert not imported_by(command, "--help") & {"alembic", "amqtt", "sqlalchemy"}


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
        (["plugin", "lst"], "muster: No such command 'lst'"),
        (["config", "show", "--config", "/nowhere.toml"], "muster: cannot read the settings file /nowhere.toml"),
    ],
)
def test_wrong_usage_exits_with_64(muster, arguments, message):
    """One line on stderr says what was wrong; nothing comes on stdout."""
    done = muster(*arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_command_the_help_is_shown(muster):
    """`muster` alone explains itself, and is still wrong usage for a script."""
    done = muster()
    assert done.returncode == 64
    assert "Usage: muster" in done.stdout + done.stderr
    assert "muster: " not in done.stderr


def test_a_command_that_cannot_be_imported_refuses_alone():
    """A missing extra makes its own command unavailable, with the reason, and no other."""
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
