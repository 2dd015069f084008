"""What a command says where the packages of an extra are missing: what to install, before anything starts."""

import functools
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Set
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from tests.core.test_cli import every_command
from typer.main import get_command

from muster import cli
from muster.extras import PACKAGES, missing_package

WITHOUT_THEM = """
import os, sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_missing = name.partition(".")[0] in os.environ["MISSING_PACKAGES"].split(",")
        return None if is_missing else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""
"""A sitecustomize for a Python in which some packages are as if they were not installed."""

PLAIN: set[str] = set()
DAEMONS = ("agent", "coordinator", "demo", "up")
"""Commands that run until they are stopped, where all that they need is installed."""

VALUES = {"CHECK": "host", "BROKER": "mosquitto", "ROLE": "coordinator"}
"""Arguments that are not just any word."""

ONE_BY_ONE = """
import gc, json, os, signal, sys, tempfile
from muster import cli, plugins
from muster.config import Config, Settings

for point in cli._commands().values():
    cli._loaded(point)
plugins.load(Config(Settings()))
gc.freeze()
for arguments in json.loads(sys.argv[1]):
    output = tempfile.TemporaryFile()
    if (child := os.fork()) == 0:
        signal.alarm(60)
        os.dup2(output.fileno(), 1), os.dup2(output.fileno(), 2)
        sys.argv = ["muster", *arguments]
        try:
            cli.main()
        except SystemExit as end:
            os._exit(end.code)  # without taking down the interpreter, which would take as long as the command
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([arguments, code, os.pread(output.fileno(), 1 << 20, 0).decode()]))
"""
"""Runs commands, given as JSON, each in a process of its own that need not import muster again."""


NOBODY_ANSWERS = {"MUSTER_URL": "http://127.0.0.1:9"}


def run_with(directory: Path, extras: Set[str], command: list[str], **environment: str):
    """Runs Python where these extras are installed and no others."""
    (directory / "sitecustomize.py").write_text(WITHOUT_THEM)
    every = {package for packages in PACKAGES.values() for package in packages}
    missing = every.difference(*(PACKAGES[extra] for extra in extras))
    paths = os.pathsep.join(filter(None, (str(directory), os.environ.get("PYTHONPATH"))))
    variables = {"PYTHONPATH": paths, "MISSING_PACKAGES": ",".join(missing)}
    variables |= {"MUSTER_DATA_DIR": str(directory / "data")}
    return subprocess.run(  # and not forked from an interpreter that has imported all packages
        [sys.executable, *command],
        env={**os.environ, **variables, **environment},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


@pytest.fixture
def muster_with(live, tmp_path):
    """Runs the command line where these extras are installed and no others: `muster_with({"agent"}, "demo")`."""
    return lambda extras, command, **environment: run_with(
        tmp_path, extras, ["-m", "muster", *command.split()], **environment
    )


def commands_that_end(extras: Set[str]) -> list[list[str]]:
    """Every command with arguments that it takes, unless it would run until it is stopped."""
    found = []
    for words in every_command():
        command: Any = get_command(cli.app)
        for word in words:
            command = command.get_command(None, word)
        if hasattr(command, "list_commands") or (words[0] in DAEMONS and words[0] in extras):
            continue
        needed = [each for each in command.params if each.required]
        options = [(each.opts[0], "x1") for each in needed if each.param_type_name == "option"]
        arguments = [VALUES.get(each.metavar, "x1") for each in needed if each.param_type_name == "argument"]
        found.append([*words, *itertools.chain(*options), *arguments])
    return found


@pytest.fixture(scope="module")
def answers(live, tmp_path_factory):
    """Code and output of every command where these extras are installed; no coordinator answers."""

    @functools.cache
    def run(extras: frozenset[str]) -> dict[str, tuple[int, str]]:
        commands = [*commands_that_end(extras), ["check", "run", "host"], ["agent", "--help"]]
        directory = tmp_path_factory.mktemp("extras")
        done = run_with(directory, extras, ["-c", ONE_BY_ONE, json.dumps(commands)], **NOBODY_ANSWERS)
        assert done.returncode == 0, done.stderr
        ended = (json.loads(line) for line in done.stdout.splitlines())
        return {" ".join(arguments): (code, output) for arguments, code, output in ended}

    return run


@pytest.mark.parametrize("extras", [PLAIN, {"agent"}, {"coordinator"}], ids=["plain", "agent", "coordinator"])
def test_every_command_says_what_to_install(answers, extras):
    """Or it works, or fails for another reason that it names; none ends with a traceback or a bare import error."""
    ended = answers(frozenset(extras))
    assert len(ended) > 35
    wrong = {
        command: (code, output)
        for command, (code, output) in ended.items()
        if code not in (0, 1, 2, 3, 64, 69) or "Traceback" in output or "No module named" in output
    }
    assert wrong == {}
    assert any("pip install 'gpu-muster[" in ended[command][1] for command in ended if command.startswith("kubernetes"))


@pytest.mark.parametrize(
    ("extras", "command", "missing"),
    [
        (PLAIN, "agent", "agent"),
        (PLAIN, "check run host", "agent"),
        (PLAIN, "coordinator", "coordinator"),
        (PLAIN, "demo", "agent,coordinator,torch"),
        (PLAIN, "up", "agent,coordinator"),
        ({"agent"}, "coordinator", "coordinator"),
        ({"agent"}, "demo", "agent,coordinator,torch"),
        ({"agent"}, "up", "agent,coordinator"),
        ({"coordinator"}, "agent", "agent"),
        ({"coordinator"}, "demo", "agent,coordinator,torch"),
        ({"coordinator"}, "up", "agent,coordinator"),
    ],
)
def test_a_command_without_its_packages_says_what_to_install(answers, extras, command, missing):
    """One line and exit code 69."""
    code, output = answers(frozenset(extras))[command]
    assert code == 69
    (line,) = output.splitlines()
    assert "needs packages that are not installed: " in line
    assert line.endswith(f"install them: pip install 'gpu-muster[{missing}]'")


@pytest.mark.parametrize(
    ("extras", "command", "missing"),
    [(PLAIN, "up", "agent,coordinator"), ({"agent", "coordinator"}, "demo", "agent,coordinator,torch")],
)
def test_it_says_so_before_anything_starts(muster_with, tmp_path, extras, command, missing):
    """In a process of its own, which has written nothing."""
    done = muster_with(extras, command)
    assert (done.returncode, done.stdout) == (69, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"install them: pip install 'gpu-muster[{missing}]'")
    assert not (tmp_path / "data").exists()


def test_a_driver_of_the_database_is_an_extra(muster_with):
    """The setting that needs it is named."""
    done = muster_with({"coordinator"}, "store backup x", MUSTER_STORE__URL="postgresql+asyncpg://m@127.0.0.1:9/x")
    assert done.returncode == 69
    assert done.stderr == (
        "muster: store.url: asyncpg is not installed; install it: pip install 'gpu-muster[postgres]'\n"
    )


def test_only_what_is_missing_is_listed(muster_with):
    """The agent's packages are there, and some of them are the coordinator's, too."""
    done = muster_with({"agent"}, "coordinator")
    listed = re.search(r"not installed: (.*); install", done.stderr)
    assert listed is not None
    assert listed[1].split(", ") == sorted({*PACKAGES["coordinator"]} - {*PACKAGES["agent"]})


def test_a_check_without_its_packages_says_what_to_install(muster_with):
    """In its finding, because only the check knows that it needs them."""
    done = muster_with({"agent"}, "check run gemm")
    assert done.returncode == 3
    assert "run.raised: torch is not installed; install it: pip install 'gpu-muster[torch]'" in done.stdout


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'other'", name="other"),
        ModuleNotFoundError(),
        ImportError("x", name="torch"),
    ],
)
def test_another_error_is_not_about_an_extra(error):
    """A package of a plugin is in no extra of ours, and a broken torch is not a missing one."""
    assert missing_package(error) is None


@pytest.mark.parametrize("command", ["agent --help", "check list", "config check"])
def test_without_any_extra_the_other_commands_work(answers, command):
    """They need nothing but what a plain installation brings."""
    code, output = answers(frozenset())[command]
    assert code == 0, output
    assert "annot be loaded" not in output


@pytest.mark.parametrize("command", ["baseline list", "node show x1", "quarantine list", "sweep list"])
def test_without_any_extra_a_coordinator_can_be_asked(answers, command):
    """They get as far as the coordinator, which does not answer here."""
    code, output = answers(frozenset())[command]
    assert code == 69
    assert output.startswith(f"muster: no coordinator answers at {NOBODY_ANSWERS['MUSTER_URL']}")


def test_a_plain_installation_starts(muster_with):
    """In a process that has imported nothing before."""
    done = muster_with(PLAIN, "sweep list", **NOBODY_ANSWERS)
    assert done.returncode == 69
    assert done.stderr.startswith("muster: no coordinator answers at ")


@functools.cache
def distributions_by_package() -> Mapping[str, list[str]]:
    """It reads the files of every installed distribution."""
    return packages_distributions()


@pytest.mark.parametrize("extra", PACKAGES)
def test_the_packages_of_an_extra_are_those_that_it_installs(extra):
    """None that pyproject.toml names is forgotten."""
    of_extra = [line for line in requires("gpu-muster") or () if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    named = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in of_extra}
    assert named
    brought_by = distributions_by_package()
    known = {
        name.lower().replace("_", "-") for package in PACKAGES[extra] for name in brought_by.get(package, [package])
    }
    assert named <= known
