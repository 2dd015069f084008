"""Runs scontrol, which reads and changes nodes in slurmctld."""

import asyncio
import os
import shlex
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from muster.errors import Unavailable
from muster_plugins.schedulers.slurm.nodes import SlurmNode, read_nodes
from muster_plugins.shared.error_words import in_words

_MOST_BYTES = 64 << 20
"""Maximum size of stdout and of stderr. Slurm has up to 65,536 nodes and writes about 700 bytes for each."""

_MOST_CHARACTERS = 300
_SHOW = ("--all", "--oneliner", "show")
_NO_NODE = "muster-asks-whether-it-may-update-nodes"

TRIES = 2
"""How often slurmctld is asked within the time for one answer.

The one of Slurm 24.11 lets about one call in twelve wait for five seconds although it has nothing to do, and answers
the next call at once (24.11.5 on two cores, 800 calls; 22.05 never does, 200 calls). A change that is asked for twice
is the same change; only a second RESUME is refused, and then the next transition finds the node resumed.
"""

_NO_RIGHT = "Invalid user id"
_REMEDY = "this user must be root or SlurmUser, or have AdminLevel=Admin in sacctmgr"


class Failed(Unavailable):
    """scontrol failed; the text says why."""


class _Unanswered(Exception):
    """scontrol was ended before it had an answer; the text is what it has said."""


@dataclass(frozen=True, slots=True)
class Scontrol:
    """The executable. Each call has `timeout_s` for all its tries; scontrol itself would wait for longer."""

    program: str
    timeout_s: float

    async def nodes(self) -> list[SlurmNode]:
        """All nodes, including those in hidden partitions. Raises Failed if slurmctld does not answer."""
        output = await self._run(*_SHOW, "nodes")
        nodes = await asyncio.to_thread(read_nodes, output)  # 10,000 nodes take a tenth of a second
        if not nodes:
            raise Failed(f"{self.program} shows no node: {_in_short(output) or 'no output'}")
        return nodes

    async def node(self, name: str) -> SlurmNode | None:
        """The node of exactly this name, if there is one. Slurm also accepts lists, and ALL for all nodes."""
        try:
            nodes = read_nodes(await self._run(*_SHOW, f"node={name}"))
        except Failed as failure:
            if f"Node {name} not found" in str(failure):
                return None
            raise
        return next((node for node in nodes if node.name == name), None)

    async def update(self, name: str, changes: Mapping[str, str]) -> None:
        """Changes a node. Raises Failed if slurmctld does not."""
        try:
            await self._run(*_update(name, changes))
        except Failed as failure:
            if _NO_RIGHT in str(failure):
                raise Failed(f"{failure}: {_REMEDY}") from None
            raise

    def update_line(self, name: str, changes: Mapping[str, str]) -> str:
        """The equivalent command for a person."""
        return shlex.join([self.program, *_update(name, changes)])

    async def check_right(self) -> None:
        """Raises Failed unless slurmctld lets this user change nodes. It checks the user before it looks for a node."""
        try:
            await self.update(_NO_NODE, {"State": "RESUME"})
        except Failed as failure:
            if "Invalid node name" not in str(failure):
                raise

    async def _run(self, *arguments: str) -> str:
        """The output of scontrol. Raises Failed without one."""
        said = ""
        for _ in range(TRIES):
            try:
                return await self._try(*arguments)
            except _Unanswered as unanswered:
                said = str(unanswered)
        silence = f"slurmctld did not answer within {self.timeout_s:g} s"
        raise Failed(f"{silence}: {said}" if said else silence)

    async def _try(self, *arguments: str) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                self.program,
                *arguments,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                env=_without_preferences(),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Failed(f"{in_words(error)}; set plugins.slurm.scontrol to where it is") from None
        try:
            async with asyncio.timeout(self.timeout_s / TRIES):
                stdout, stderr, code = await asyncio.gather(_all(process.stdout), _all(process.stderr), process.wait())
        except TimeoutError:
            raise _Unanswered(_in_short(await _end(process))) from None
        finally:
            await _end(process)
        if code != 0:
            raise Failed(_in_short(stderr) or _in_short(stdout) or f"{self.program} ended with {code}")
        return stdout


def _update(name: str, changes: Mapping[str, str]) -> list[str]:
    return ["update", f"NodeName={name}", *(f"{key}={value}" for key, value in changes.items())]


def _without_preferences() -> dict[str, str]:
    """The environment without variables that change the output of scontrol, its times, or the cluster that it asks."""
    preferences = ("SCONTROL_", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
    return {name: value for name, value in os.environ.items() if not name.startswith(preferences)}


async def _all(stream: asyncio.StreamReader | None) -> str:
    """The output up to its end; empty if it never ends."""
    assert stream, "it is a pipe"
    try:
        while True:
            await stream.readexactly(_MOST_BYTES)
    except asyncio.IncompleteReadError as end:
        return end.partial.decode(errors="replace")


async def _end(process: Process) -> str:
    """Kills the process and its children, and reads the rest, because asyncio keeps unread pipes open.

    Returns the part of its stderr that nobody has read so far.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    _, complaints = await process.communicate()
    return complaints.decode(errors="replace")


def _in_short(text: str) -> str:
    """The end of the text, in one line."""
    return "; ".join(text.split("\n")[-3:]).strip("; ")[-_MOST_CHARACTERS:]
