"""Whether a process is alive."""

import psutil


def is_alive(pid: int) -> bool:
    """Whether it has not ended. One that has may still wait for its parent to see it off, and go while it is asked."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
