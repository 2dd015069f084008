"""The watch of the check `nvml`: XIDs are told as they happen, while others read."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muster_plugins.checks.nvml.session import WAIT_S

HERE = Path(__file__).parent


class Watch:
    """The other end of `watching_child.py`."""

    def __init__(self, process: "subprocess.Popen[str]", state_file: Path) -> None:
        self.process = process
        self._state_file = state_file

    def state(self, **values: object) -> None:
        half = self._state_file.with_suffix(".new")
        half.write_text("".join(f"{key}={value}\n" for key, value in values.items()), encoding="utf-8")
        half.replace(self._state_file)

    def hear(self) -> object:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def read(self) -> object:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.hear()


@pytest.fixture
def watch(live, nvml_stub, tmp_path, request):
    """A child that watches NVML's stub, in the state that the test is parametrised with."""
    state_file = tmp_path / "state"
    state_file.write_text(getattr(request, "param", "devices=2\n"), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-W", "error", HERE / "watching_child.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"LD_LIBRARY_PATH": str(nvml_stub), "STUB_NVML_STATE": str(state_file)},
    )
    yield Watch(process, state_file)
    process.kill()
    process.communicate()


def test_an_xid_is_told_as_it_happens(watch):
    """The watch returns at once, the next reading has the XID, and the watch goes on."""
    assert watch.read() == {}
    watch.state(devices=2, xids="1:79")
    assert watch.hear() == "heard"
    assert watch.read() == {"1": [[79, 1]]}
    watch.state(devices=2, xids="1:79,1:79,0:48")
    assert watch.hear() == "heard"
    assert watch.read() == {"0": [[48, 1]], "1": [[79, 3]]}


def test_a_storm_is_told_once(watch):
    """All waiting XIDs are taken together, so that a thousand XIDs do not cause a thousand readings."""
    watch.state(devices=2, xids=",".join(["0:13"] * 40))
    assert watch.hear() == "heard"
    assert watch.read() == {"0": [[13, 40]]}


def test_a_reading_is_not_held_up_by_the_watch(watch):
    """The watch waits in the driver without a lock that a reading needs."""
    started = time.monotonic()
    assert [watch.read() for _ in range(20)] == [{}] * 20
    assert time.monotonic() - started < 10 * WAIT_S


@pytest.mark.parametrize("watch", ["devices=2\ninit=9\n", "devices=2\nbroken=999\n"], indirect=True)
def test_a_driver_that_is_absent_is_waited_for(watch):
    """The watch neither ends nor fires, and readings report the problem as before."""
    assert {watch.read() for _ in range(5)} <= {"driver_not_loaded", "failed"}
