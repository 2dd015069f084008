"""The program `muster`: it starts a daemon itself, and leaves every other command line to `muster.cli`.

A daemon needs none of the libraries of the command line. An agent would keep 2 MiB of them as long as it runs, because
its three processes have copies of many pages. So `muster agent` and `muster coordinator`, alone or with `--config
FILE`, are started without them: by the function that an entry point of the group `muster.daemons` names.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from muster.errors import EX_SOFTWARE, MusterError
from muster.garbage import no_collection
from muster.terminal import say

GROUP = "muster.daemons"

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Runs the command that the arguments name, and exits."""
    _open_closed_streams()
    match sys.argv[1:]:
        case [name]:
            start = _start_of(name, os.environ.get("MUSTER_CONFIG"))
        case [name, "--config", file]:
            start = _start_of(name, file)
        case _:
            start = None
    if start is None:
        from muster import cli  # noqa: PLC0415 (see above)

        cli.main()
    else:
        end_at_sigterm()
        sys.exit(exit_code(start))


def _open_closed_streams() -> None:
    """Gives a process that was started without stdout or stderr a place for what it prints, which drops it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (open as long as the process)


def _start_of(name: str, file: str | None) -> Callable[[], object] | None:
    """Starts the daemon `name` with the settings in `file`; None if there is no such daemon."""
    point = next(iter(entry_points(group=GROUP, name=name)), None)
    if point is None:
        return None

    def start() -> None:
        with no_collection():
            daemon = point.load()
            from muster.config import load  # noqa: PLC0415 (other commands start without the models)
        daemon(load(Path(file) if file else None))

    return start


def exit_code(command: Callable[[], object]) -> int:
    """Runs a command and returns its exit code. A known error is printed in one line, a bug with its traceback."""
    try:
        result = command()
    except MusterError as error:
        say(f"muster: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:
        sys.excepthook(*sys.exc_info())
        return EX_SOFTWARE
    finally:
        gc.freeze()  # all goes with the process; Python would look for garbage first, for up to half a second
    return result if isinstance(result, int) else 0


def end_at_sigterm() -> None:
    """Lets SIGTERM end the first process of a container, too, before a daemon handles it in its own way.

    The kernel drops a signal for that process as long as it has no handler, so a pod that is deleted while it starts
    would be killed only after its grace period.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
