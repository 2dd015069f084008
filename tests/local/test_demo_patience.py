"""How long the demo waits: for as long as something happens."""

import asyncio
import io

import pytest

from muster.config import HttpSettings
from muster.errors import Unavailable
from muster_coordinator.local import demo
from muster_coordinator.local.demo import Demo
from muster_coordinator.local.demo_plan import plan

QUIET_S = 3.0


class Scripted(Demo):
    """A demo that starts nothing: it prints `lines` lines, each after `pause_s`, and then hangs."""

    lines = 0
    pause_s = 0.0

    async def _start_coordinator(self) -> None:
        for number in range(self.lines):
            await asyncio.sleep(self.pause_s)
            self._line(f"line {number}")
        await asyncio.Event().wait()


@pytest.mark.parametrize("lines", [0, 4])
async def test_it_ends_only_when_nothing_new_happens(tmp_path, monkeypatch, lines):
    """Steps that together take longer are all seen; then it says how long it has stood still, and where logs are."""
    monkeypatch.setattr(demo, "QUIET_S", QUIET_S)
    out = io.StringIO()
    hanging = Scripted(plan(2, with_faults=False), tmp_path, None, HttpSettings(), out)
    hanging.lines, hanging.pause_s = lines, QUIET_S / 3
    async with hanging:
        with pytest.raises(Unavailable, match=f"stood still for 3 s: .*{tmp_path}"):
            await hanging.run()
    assert out.getvalue().count("line ") == lines
