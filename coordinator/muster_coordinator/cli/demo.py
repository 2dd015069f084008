"""`muster demo`: a fleet on this host with injected faults, which muster must find.

Its help needs none of the imports inside the functions.
"""

import shutil
import signal
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.commands.options import ConfigOption
from muster.errors import Refused
from muster.extras import require_extras
from muster.settings_table import read_table
from muster.start import INTERRUPTED, TERMINATED
from muster.terminal import say

if TYPE_CHECKING:
    from muster_coordinator.local.demo import Demo

WRONG = 2
"""Exit code if muster named other nodes than the faulty ones: the exit code of a check that fails."""


def demo(
    nodes: Annotated[int, typer.Option(help="Number of agents: 6 to 64; 2 to 64 with --no-faults.")] = 8,
    serve: Annotated[
        bool, typer.Option("--serve", "--keep", help="Leave the fleet running, to look at it in a browser.")
    ] = False,
    no_faults: Annotated[bool, typer.Option("--no-faults", help="Start a fleet without faults.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")] = None,
    config_file: ConfigOption = None,
) -> None:
    """Start a fleet on this host with two faults, and find them.

    Broker, coordinator and agents are real processes; only the devices and their faults are simulated.
    """
    require_extras("demo", "agent", "coordinator", "torch")
    import asyncio  # noqa: PLC0415 (see above)

    from muster.config import validated_settings  # noqa: PLC0415 (see above)
    from muster_coordinator.local.demo import Demo  # noqa: PLC0415 (see above)
    from muster_coordinator.local.demo_plan import plan, require_usable  # noqa: PLC0415 (see above)

    fleet = plan(nodes, with_faults=not no_faults)
    table = read_table(config_file, {})
    settings = validated_settings(table)  # errors in the file are reported here and not in the log of a part
    if config_file is not None:
        require_usable(table, config_file)
    if json_file is not None:
        _require_writable(json_file)
    directory = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    try:
        ok = asyncio.run(_run(Demo(fleet, directory, config_file, settings.http), serve, json_file))
    except (asyncio.CancelledError, KeyboardInterrupt) as stopped:
        shutil.rmtree(directory)
        raise typer.Exit(TERMINATED if isinstance(stopped, asyncio.CancelledError) else INTERRUPTED) from None
    if not ok:
        raise typer.Exit(WRONG)
    shutil.rmtree(directory)  # a demo that fails keeps its logs there


def _require_writable(file: Path) -> None:
    """Raises Refused for a file that cannot be written, before anything is started."""
    try:
        file.open("ab").close()
    except OSError as error:
        raise Refused(f"--json: cannot write {file}: {error.strerror}") from None


async def _run(running: "Demo", serve: bool, json_file: Path | None) -> bool:
    import asyncio  # noqa: PLC0415 (see above)

    from pydantic_core import to_json  # noqa: PLC0415 (see above)

    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    async with running:
        outcome = await running.run()
        if json_file is not None:
            await asyncio.to_thread(json_file.write_bytes, to_json(asdict(outcome), indent=2) + b"\n")
        if serve:
            await _stay(running)
    return outcome.ok


async def _stay(running: "Demo") -> None:
    import asyncio  # noqa: PLC0415 (see above)

    from muster import local_token  # noqa: PLC0415 (see above)

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    say(f"the fleet stays up; look at it in a browser: {running.url}/ (press Ctrl-C to end it)")
    say(f"to change things on its pages, log in with the token in {running.data_dir / local_token.NAME}")
    say(f"to change things with `muster`, set MUSTER_URL={running.url} MUSTER_DATA_DIR={running.data_dir}")
    await stopped.wait()
