"""`muster up`: broker, coordinator and agent on one host, until SIGINT or SIGTERM."""

import asyncio
import os
import signal
from pathlib import Path

import structlog

from muster.backoff import backoff_s
from muster.errors import EX_UNAVAILABLE, EX_USAGE
from muster_coordinator.local import processes

RESTART_BASE_S = 1.0
RESTART_CAP_S = 30.0
"""A part that ends is restarted after a pause. The pause doubles each time until the part stays up."""

STEADY_S = 60.0
"""After this time a part counts as up, and the next pause is short again."""

REFUSALS = (EX_USAGE, EX_UNAVAILABLE)
"""With these exit codes a part has reported an error that a person must fix. A restart would not help."""

log = structlog.get_logger()


class PartRefused(Exception):
    """A part refused to start; `code` is its exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def run(config: Path | None) -> int:
    """Runs the parts until SIGINT or SIGTERM, and returns 0; the exit code of a part if it refuses to start."""
    arguments = [] if config is None else ["--config", str(config)]
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    code = 0
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_keep(name, [name, *arguments]), name=f"keep {name}")
                for name in ("coordinator", "agent")
            ]
            await stopped.wait()
            for task in tasks:
                task.cancel()
    except* PartRefused as refusals:
        code = max(refusal.code for refusal in refusals.exceptions if isinstance(refusal, PartRefused))
    return code


async def _keep(name: str, arguments: list[str]) -> None:
    clock = asyncio.get_running_loop().time
    failures = 0
    while True:
        started = clock()
        code = await _run_once(name, arguments)
        if code in REFUSALS:
            raise PartRefused(code)
        if clock() - started > STEADY_S:
            failures = 0
        failures += 1
        pause_s = backoff_s(failures, RESTART_BASE_S, RESTART_CAP_S)
        log.error("part_ended", part=name, exit_code=code, restart_in_s=pause_s)
        await asyncio.sleep(pause_s)


async def _run_once(name: str, arguments: list[str]) -> int:
    part = await processes.start(name, arguments, os.environ)
    try:
        return await part.process.wait()
    finally:
        await processes.stop([part])
