"""The tutorial can be followed: its commands run in its order on real processes, and show what it says."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.free_ports import free_port
from tests.muster_process import MusterProcess
from tests.waiting import wait_for

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorials" / "first-hour.md").read_text(encoding="utf-8")
STEPS = {
    int(number): text for number, text in re.findall(r"^## (\d)\.(.*?)(?=^## )", TUTORIAL, re.MULTILINE | re.DOTALL)
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(step: int, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(STEPS[step]) if kind == language]


def commands(step: int) -> list[str]:
    return [line.removeprefix("$ ") for text in blocks(step, "console") for line in text.splitlines()]


class Reader:
    """Somebody who follows the tutorial in a directory, on other ports than the usual ones."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.broker, http = free_port(), free_port()
        (directory / "bin").mkdir()
        program = directory / "bin" / "muster"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m muster "$@"\n')
        program.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
        self.environment = kept | {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "MUSTER_CONFIG": str(directory / "lab.toml"),
            "MUSTER_BROKER__LISTEN": f"127.0.0.1:{self.broker}",
            "MUSTER_HTTP__LISTEN": f"127.0.0.1:{http}",
            "MUSTER_AGENT__LISTEN": "127.0.0.1:0",
            "MUSTER_URL": f"http://127.0.0.1:{http}",
        }

    def type(self, line: str) -> tuple[int, str]:
        """The exit code of a command that ends by itself, and what it printed."""
        program, *arguments = shlex.split(line)
        assert program == "muster"
        with (self.directory / "printed").open("w+b") as printed:
            command = MusterProcess(
                *arguments, env=self.environment, cwd=self.directory, stdout=printed, stderr=printed
            )
            code = command.wait(60)
            printed.seek(0)
            text = printed.read().decode()
        assert "Traceback" not in text
        return code, text

    def sees(self, line: str, *words: str) -> None:
        """Types the line again and again, as the reader does, until it shows the words."""
        wait_for(lambda: all(word in self.type(line)[1] for word in words), f"{line} to show {words}")

    @contextlib.contextmanager
    def terminal(self, script: str) -> Iterator[None]:
        """A terminal in which a block runs until Ctrl-C."""
        log = (self.directory / "terminal.log").open("ab")
        process = subprocess.Popen(
            ["bash", "-c", script.replace(":1883", f":{self.broker}")],
            env=self.environment,
            cwd=self.directory,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(30)
            log.close()


@pytest.fixture
def reader(tmp_path) -> Reader:
    (settings,) = blocks(2, "toml")
    (tmp_path / "lab.toml").write_text(settings)
    return Reader(tmp_path)


def test_the_tutorial_can_be_followed(reader):
    """From an empty directory to a node that was found, cordoned in a dry run, repaired and uncordoned."""
    check, up = commands(2)
    assert reader.type(check)[0] == 0
    second, third = (text for text in blocks(2, "sh") if "muster agent" in text)
    (broken,), (repaired,) = blocks(5, "sh"), blocks(6, "sh")
    (sweep,) = commands(4)
    with reader.terminal(up), reader.terminal(second):
        with reader.terminal(third):
            listing, show, story = commands(3)
            reader.sees(listing, "node-1", "node-2", "node-3")
            reader.sees(show, "HEALTHY", "IN_SERVICE")
            reader.sees(story, "joined")
            assert reader.type(sweep)[0] == 0
        with reader.terminal(broken):
            listing, show, quarantined, story, sweep = commands(5)
            reader.sees(listing, "CORDONED")
            reader.sees(show, "simulated.devices_missing", "gpu-missing")
            reader.sees(quarantined, "node-3", "CORDONED (dry run)")
            reader.sees(story, "WOULD")
            assert reader.type(sweep)[0] == 2
        with reader.terminal(repaired):
            sweep, quarantined, history, listing = commands(6)
            reader.sees(show, "devices: 2 x")
            assert reader.type(sweep)[0] == 0
            reader.sees(history, "PROBATION to IN_SERVICE")
            assert "node-3" not in reader.type(quarantined)[1]
            assert "CORDONED" not in reader.type(listing)[1]


def test_every_step_is_walked():
    """A step or a command that is added to the tutorial is added to the walk above."""
    assert {step: len(commands(step)) for step in STEPS} == {1: 1, 2: 2, 3: 3, 4: 1, 5: 5, 6: 4, 7: 0}
