"""What calls of the command line import: each import makes a command start later."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from muster import cli

HEAVY = {"aiohttp", "aiomqtt", "alembic", "amqtt", "pynvml", "sqlalchemy", "torch"}

IMPORTS = """
import json, os, sys
from muster import cli

for line in sys.stdin:
    if (child := os.fork()) == 0:
        answer = os.dup(1)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        sys.argv = ["muster", *json.loads(line)]
        try:
            cli.main()
        finally:
            os.write(answer, (" ".join(sys.modules) + "\\n").encode())
            os._exit(0)
    os.waitpid(child, 0)
"""
"""Prints the modules that each call has imported when it ends, of a process that has imported only what all do."""


@pytest.fixture(scope="module")
def modules_of(live) -> Iterator[Callable[..., set[str]]]:
    """The modules that a call of the command line has imported when it ends, whatever comes of it."""
    with subprocess.Popen(
        [sys.executable, "-c", IMPORTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        asked, told = process.stdin, process.stdout

        def modules(*arguments: str) -> set[str]:
            print(json.dumps(arguments), file=asked, flush=True)
            found = set(told.readline().split())
            assert "muster.cli" in found
            return found

        yield modules


@pytest.fixture(scope="module")
def imported_by(modules_of) -> Callable[..., set[str]]:
    """The top-level modules that a call of the command line has imported when it ends."""
    return lambda *arguments: {name.partition(".")[0] for name in modules_of(*arguments)}


def test_version_is_quick(imported_by):
    """`--version` imports no command and none of the heavy libraries."""
    modules = imported_by("--version")
    assert not modules & HEAVY
    assert not modules & {"muster_agent", "muster_coordinator", "muster_plugins"}


def test_plugin_commands_import_no_heavy_library(imported_by):
    """Plugins are loaded without torch and the driver: these belong to children."""
    assert not imported_by("plugin", "list") & {"torch", "pynvml", "sqlalchemy", "amqtt"}


@pytest.mark.parametrize("command", ["baseline", "node", "quarantine", "reference", "sweep"])
def test_commands_that_ask_a_coordinator_import_nothing_that_only_it_needs(imported_by, command):
    """These imports would make the start half as long again."""
    assert not imported_by(command, "--help") & {"alembic", "amqtt", "sqlalchemy"}


@pytest.mark.parametrize("place", ["--url", "--config"])
def test_the_list_of_nodes_imports_no_model(modules_of, place, tmp_path):
    """They take longer to import than everything else that `muster node list` does; it works on the API's JSON.

    Nor does it need the models of the settings for an ordinary settings file.
    """
    settings = tmp_path / "muster.toml"
    settings.write_text("fleet = 'f'\ndata_dir = '/nowhere'\n[http]\nlisten = '127.0.0.1:1'\n[quarantine]\n")
    modules = modules_of("node", "list", place, "http://127.0.0.1:1" if place == "--url" else str(settings))
    assert "muster.client" in modules
    assert not modules & {"muster.model", "muster.config", "muster.check"}
    assert not {name for name in modules if name.startswith(("muster_coordinator.model", "muster_coordinator.fleet"))}
    assert not {name.partition(".")[0] for name in modules} & (HEAVY | {"muster_agent", "muster_plugins"})


MODELS = {"muster.model", "muster.config", "muster.check", "muster.plugins"}


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in sorted(cli._commands()))])
def test_help_imports_no_model(modules_of, arguments):
    """Whatever a command needs to run is imported when it runs: importing it takes longer than the help."""
    modules = modules_of(*arguments)
    assert not modules & MODELS
    assert not {name for name in modules if name.startswith("muster_coordinator.model.") and "sweep_id" not in name}
    assert not {name.partition(".")[0] for name in modules} & (HEAVY | {"asyncio", "pluggy", "structlog"})


def test_the_list_of_sweeps_imports_no_model(modules_of):
    """As the list of nodes."""
    modules = modules_of("sweep", "list", "--url", "http://127.0.0.1:1")
    assert "muster_coordinator.views.sweeps.sweep_list" in modules
    assert not modules & MODELS
    assert "muster_coordinator.model.sweep_records" not in modules


def test_the_settings_are_shown_without_plugins(modules_of):
    """Only the tables of plugins need them, to find their secrets."""
    modules = modules_of("config", "show")
    assert "muster.config" in modules
    assert not modules & {"muster.plugins", "muster.check", "structlog", "asyncio"}


def test_the_list_of_checks_imports_nothing_that_runs_them(modules_of):
    """Neither the launcher nor the reports of suites."""
    modules = modules_of("check", "list")
    assert "muster.plugins" in modules
    assert not {name for name in modules if name.startswith(("muster_agent.acceptance", "muster_agent.runs", "rich"))}
