"""Reports the state of a daemon to systemd, by datagrams to the socket that NOTIFY_SOCKET names (see sd_notify(3)).

Written by hand: the protocol is one datagram, shorter than the declaration of a dependency.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping

READY = "READY=1"
STOPPING = "STOPPING=1"
WATCHDOG = "WATCHDOG=1"


def notify(state: str, environment: Mapping[str, str] = os.environ) -> None:
    """Sends `state` to the supervisor; does nothing without one."""
    address = environment.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        try:
            sender.sendto(state.encode(), address)
        except OSError:
            return


def watchdog_interval_s(environment: Mapping[str, str] = os.environ) -> float | None:
    """Seconds between two watchdog messages: half of systemd's limit. None if systemd does not watch this process."""
    limit_us = environment.get("WATCHDOG_USEC", "")
    watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(limit_us) / 2e6 if limit_us.isdigit() and int(limit_us) and watched else None


async def keep_watchdog_quiet(is_well: Callable[[], bool], environment: Mapping[str, str] = os.environ) -> None:
    """Sends watchdog messages from the event loop while `is_well()`; returns at once if systemd does not watch.

    systemd restarts the daemon if the event loop hangs or `is_well()` stays false.
    """
    interval_s = watchdog_interval_s(environment)
    while interval_s is not None:
        if is_well():
            notify(WATCHDOG, environment)
        await asyncio.sleep(interval_s)
