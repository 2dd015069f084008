"""Programs that others wrote, run as real child processes."""

import os
import time
from pathlib import Path

import pytest

from muster_plugins.shared import programs
from muster_plugins.shared.programs import NotRun, TimedOut, find_program, run_program


@pytest.fixture
def script(live, tmp_path):
    def write(body: str, name: str = "program"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="ascii")
        path.chmod(0o755)
        return path

    return write


def test_a_program_is_told_apart_by_exit_code_and_streams(script):
    """Exit code, stdout and stderr come back each for itself."""
    done = run_program([script("echo out; echo err >&2; exit 3")], timeout_s=20)
    assert (done.exit_code, done.stdout, done.stderr, done.truncated) == (3, "out\n", "err\n", False)


def test_a_program_gets_its_arguments_as_they_are_and_the_added_environment(script):
    """No shell comes between: an argument with a semicolon is one argument."""
    done = run_program([script('echo "$1|$EXTRA|$PATH"'), "a; exit 9"], timeout_s=20, env={"EXTRA": "yes"})
    assert done.stdout == f"a; exit 9|yes|{os.environ['PATH']}\n"


def test_a_variable_can_be_taken_away(script, monkeypatch):
    """The program does not see it at all."""
    monkeypatch.setenv("EXTRA", "yes")
    assert run_program([script('echo "${EXTRA-none}"')], timeout_s=20, env={"EXTRA": None}).stdout == "none\n"


def test_a_program_ended_by_a_signal_has_a_negative_exit_code(script):
    """As subprocess tells it."""
    assert run_program([script("kill -9 $$")], timeout_s=20).exit_code == -9


def test_a_program_that_does_not_end_is_killed_with_its_children(script, tmp_path):
    """What it said until then is kept, and nothing of its process group lives on."""
    pid_file = tmp_path / "pid"
    with pytest.raises(TimedOut, match=r"did not finish within 0\.5 s") as raised:
        run_program([script(f"echo started; sleep 600 & echo $! > {pid_file}; wait")], timeout_s=0.5)
    assert raised.value.said == "started\n"
    child = int(pid_file.read_text())
    deadline = time.monotonic() + 20
    while _runs(child):
        assert time.monotonic() < deadline, "the child of the killed program lives on"


def test_a_program_that_closes_its_output_and_goes_on_is_killed(script):
    """The deadline holds for the program, not only for its output."""
    with pytest.raises(TimedOut):
        run_program([script("exec >&- 2>&-; sleep 600")], timeout_s=0.5)


def test_what_a_program_leaves_behind_does_not_keep_it_from_ending(script):
    """A child in the background holds the output open; what it would say does not count."""
    done = run_program([script("(sleep 600; echo late) & echo said; exit 3")], timeout_s=60)
    assert (done.exit_code, done.stdout) == (3, "said\n")
    assert done.duration_s < 30


def test_endless_output_is_bounded(script, monkeypatch):
    """What comes after the limit is dropped, and that it was is told."""
    monkeypatch.setattr(programs, "MOST_OUTPUT_BYTES", 100_000)
    done = run_program([script("head -c 300000 /dev/zero")], timeout_s=20)
    assert (len(done.stdout), done.truncated) == (100_000, True)


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("content", [None, "no program"])
def test_what_cannot_be_started_is_told(tmp_path, content):
    """A missing file, and one that is no program."""
    path = tmp_path / "program"
    if content is not None:
        path.write_text(content, encoding="ascii")
        path.chmod(0o755)
    with pytest.raises(NotRun, match=str(path)):
        run_program([path], timeout_s=20)


def test_a_program_is_found_by_path_or_along_path(script, monkeypatch):
    """A bare name is looked for as a shell would; what is not executable is not found."""
    path = script("true", name="acme-tool")
    monkeypatch.setenv("PATH", str(path.parent))
    assert find_program("acme-tool") == path
    assert find_program(path) == path
    path.chmod(0o644)
    assert find_program("acme-tool") is None


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
