"""`muster up` and `muster demo` as processes, and whether anything of them is left."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from benchmarks.free_ports import free_address
from tests.muster_process import ONE_THREAD, MusterProcess
from tests.waiting import wait_for


class Local:
    """A command that starts parts of muster below it; its log and theirs go to one file."""

    def __init__(self, arguments: list[str], settings: dict[str, str], log: Path) -> None:
        self._log = log
        self.data_dir = Path(settings["MUSTER_DATA_DIR"])
        with log.open("wb") as output:
            self.process = MusterProcess(*arguments, env={**os.environ, **settings}, stdout=output, stderr=output)

    @property
    def text(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def logged(self, event: str, times: int = 1) -> dict[str, Any]:
        """The line of that event that was logged for the `times`th time, once it is there."""

        def read() -> dict[str, Any] | None:
            whole = self.text[: self.text.rfind("\n") + 1].splitlines()
            lines = [json.loads(line) for line in whole if line.startswith("{")]
            found = [line for line in lines if line.get("event") == event]
            assert len(found) >= times or self.process.poll() is None, self.text
            return found[times - 1] if len(found) >= times else None

        line: dict[str, Any] = wait_for(read, f"{event} in the log")
        return line

    def family(self) -> list[psutil.Process]:
        process = psutil.Process(self.process.pid)
        return [process, *process.children(recursive=True)]

    def left(self) -> list[psutil.Process]:
        """Every process that was started with our data directory and is still there."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            return process.environ().get("MUSTER_DATA_DIR") == str(self.data_dir)
        return False

    def part(self, command: str) -> psutil.Process:
        """The child that runs `muster <command>`."""
        return next(child for child in psutil.Process(self.process.pid).children() if command in child.cmdline())

    def end(self, number: int) -> tuple[int, float]:
        """Sends a signal; gives the exit code and how many seconds it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(30), time.monotonic() - began


@pytest.fixture
def local(live: None, tmp_path: Path) -> Iterator[Callable[..., Local]]:
    """Starts a command with free ports and a data directory of its own; `local("up", MUSTER_NODE="n")`."""
    started: list[Local] = []

    def start(*arguments: str, **settings: str) -> Local:
        ours = {
            "MUSTER_NODE": "here",
            "MUSTER_DATA_DIR": str(tmp_path / "data"),
            "MUSTER_BROKER__LISTEN": free_address(),
            "MUSTER_HTTP__LISTEN": free_address(),
            "MUSTER_AGENT__LISTEN": "127.0.0.1:0",
            "MUSTER_AGENT__SPREAD_S": "600",  # nothing waits for a check in the background, and some import torch
            "MUSTER_LOG__FORMAT": "json",
            "MUSTER_PLUGINS__DISABLED": '["nvml"]',
            "MUSTER_PLUGINS__SIMULATED": '{"enabled": true, "devices": 1}',
            "TMPDIR": str(tmp_path),
        }
        started.append(Local([*arguments], ours | settings, tmp_path / f"log-{len(started)}"))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            for process in one.family():
                process.kill()
            one.process.wait()


@pytest.fixture
def torch_in_agents(tmp_path: Path) -> dict[str, str]:
    """Variables with which agents have torch when they start, so that none of their runs imports it."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nif 'agent' in sys.orig_argv:\n    import torch.distributed\n")
    return {"PYTHONPATH": str(site), **ONE_THREAD}


@pytest.fixture
def nothing_left() -> Callable[[list[psutil.Process]], bool]:
    """Waits until every process of a family is gone."""
    return lambda family: wait_for(lambda: not any(one.is_running() for one in family), "every process to be gone")
