"""What a command says where the packages of an extra are missing: what to install, before anything starts."""

import itertools
import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
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


@pytest.fixture
def muster_with(live, tmp_path):
    """Runs the command line where these extras are installed and no others: `muster_with({"agent"}, "demo")`."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_THEM)
    every = {package for packages in PACKAGES.values() for package in packages}

    def run(extras: set[str], command: str | list[str], **environment: str):
        missing = every.difference(*(PACKAGES[extra] for extra in extras))
        paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
        variables = {"PYTHONPATH": paths, "MISSING_PACKAGES": ",".join(missing)}
        variables |= {"MUSTER_DATA_DIR": str(tmp_path / "data")}
        return subprocess.run(  # and not forked from an interpreter that has imported all packages
            [sys.executable, *(["-m", "muster", *command.split()] if isinstance(command, str) else command)],
            env={**os.environ, **variables, **environment},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    return run


def commands_that_end(extras: set[str]) -> list[list[str]]:
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


@pytest.mark.parametrize("extras", [PLAIN, {"agent"}, {"coordinator"}], ids=["plain", "agent", "coordinator"])
def test_every_command_says_what_to_install(muster_with, extras):
    """Or it works, or fails for another reason that it names; none ends with a traceback or a bare import error."""
    done = muster_with(
        extras, ["-c", ONE_BY_ONE, json.dumps(commands_that_end(extras))], MUSTER_URL="http://127.0.0.1:9"
    )
    assert done.returncode == 0, done.stderr
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ended) > 35
    wrong = [each for each in ended if each[1] not in (0, 1, 2, 3, 64, 69) or "Traceback" in each[2]]
    assert wrong == []
    assert [each for each in ended if "No module named" in each[2]] == []
    to_install = {arguments[0] for arguments, _, output in ended if "pip install 'gpu-muster[" in output}
    assert to_install >= {"kubernetes", "demo", "up"} | {
        part for part in ("agent", "coordinator") if part not in extras
    }


def test_a_driver_of_the_database_is_an_extra(muster_with):
    """The setting that needs it is named."""
    done = muster_with({"coordinator"}, "store backup x", MUSTER_STORE__URL="postgresql+asyncpg://m@127.0.0.1:9/x")
    assert done.returncode == 69
    assert done.stderr == (
        "muster: store.url: asyncpg is not installed; install it: pip install 'gpu-muster[postgres]'\n"
    )


@pytest.mark.parametrize(
    ("extras", "command", "missing"),
    [
        (PLAIN, "agent", "agent"),
        (PLAIN, "check run host", "agent"),
        (PLAIN, "coordinator", "coordinator"),
        (PLAIN, "demo", "agent,coordinator,torch"),
        (PLAIN, "up", "agent,coordinator"),
        ({"agent"}, "up", "agent,coordinator"),
        ({"coordinator"}, "agent", "agent"),
        ({"agent", "coordinator"}, "demo", "agent,coordinator,torch"),
    ],
)
def test_a_command_without_its_packages_says_what_to_install(muster_with, tmp_path, extras, command, missing):
    """One line and exit code 69, and nothing has been started or written before."""
    done = muster_with(extras, command)
    assert (done.returncode, done.stdout) == (69, "")
    (line,) = done.stderr.splitlines()
    assert "needs packages that are not installed: " in line
    assert line.endswith(f"install them: pip install 'gpu-muster[{missing}]'")
    assert not (tmp_path / "data").exists()


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
def test_without_any_extra_the_other_commands_work(muster_with, command):
    """They need nothing but what a plain installation brings."""
    done = muster_with(PLAIN, command)
    assert done.returncode == 0, done.stderr
    assert "annot be loaded" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["baseline list", "node show n1", "quarantine list", "sweep list"])
def test_without_any_extra_a_coordinator_can_be_asked(muster_with, command):
    """They get as far as the coordinator, which does not answer here."""
    done = muster_with(PLAIN, command, MUSTER_URL="http://127.0.0.1:9")
    assert done.returncode == 69
    assert done.stderr.startswith("muster: no coordinator answers at http://127.0.0.1:9")


@pytest.mark.parametrize("extra", PACKAGES)
def test_the_packages_of_an_extra_are_those_that_it_installs(extra):
    """None that pyproject.toml names is forgotten."""
    of_extra = [line for line in requires("gpu-muster") or () if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    named = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in of_extra}
    assert named
    brought_by = packages_distributions()
    known = {
        name.lower().replace("_", "-") for package in PACKAGES[extra] for name in brought_by.get(package, [package])
    }
    assert named <= known
