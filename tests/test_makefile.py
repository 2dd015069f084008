"""The Makefile prepares an environment that holds nothing yet before it uses it."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def recipe(target: str, venv: Path) -> list[str]:
    """The commands, in order, that a target would run with an environment that does not exist yet."""
    # These tests run below make themselves, which would pass on to run two targets at a time.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    done = subprocess.run(
        ["make", "--dry-run", target, f"VENV={venv}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "target",
    ["alone", "costs", "docs", "hosts", "images", "lint", "pure", "quick", "release", "side-by-side", "site", "test"],
)
def test_a_target_installs_what_it_uses(target, tmp_path):
    """In a fresh clone each target installs muster with what its tests need before it runs anything of it."""
    venv = tmp_path / "venv"

    commands = recipe(target, venv)

    uses = [n for n, line in enumerate(commands) if line.startswith(f"{venv}/bin/") and " -m pip " not in line]
    assert uses
    assert f"touch {venv}/.installed-for-tests" in commands[: uses[0]]


@pytest.mark.parametrize("target", ["alone", "costs", "hosts", "images", "side-by-side", "test"])
def test_tests_with_servers_have_them(target, tmp_path):
    """In a fresh clone what runs tests with real servers installs these first."""
    commands = recipe(target, tmp_path)

    tests = [n for n, line in enumerate(commands) if " -m pytest" in line]
    assert tests
    assert ".ci/system-packages tests" in commands[: tests[0]]


def test_the_demo_needs_nothing_for_tests(tmp_path):
    """Whoever only wants to see the demo installs nothing that tests need."""
    commands = recipe("demo", tmp_path)

    assert commands[-1] == f"{tmp_path}/bin/muster demo"
    assert not [line for line in commands if "[dev]" in line or line == ".ci/system-packages tests"]
