"""What systemd is told."""

import asyncio
import os
import socket

import pytest
from tests.cases import cases

from muster.systemd import READY, WATCHDOG, keep_watchdog_quiet, notify, watchdog_interval_s


@pytest.fixture(params=["path", "abstract"])
def supervisor(live, request, tmp_path):
    """A notification socket and the name by which NOTIFY_SOCKET has it."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@muster-test-{os.getpid()}-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(name.replace("@", "\0", 1) if name.startswith("@") else name)
        listener.settimeout(10)
        yield listener, name


def test_a_state_is_one_datagram(supervisor):
    """To sockets in the file system and to abstract ones."""
    listener, name = supervisor
    notify(READY, {"NOTIFY_SOCKET": name})
    assert listener.recv(100) == b"READY=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_without_a_supervisor_nothing_happens(environment):
    """Daemons run as well by hand."""
    notify(READY, environment)


@cases(
    ("environment", "expected"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_the_watchdog_is_told_twice_in_its_time(environment, expected):
    """Only if it watches this very process."""
    assert watchdog_interval_s(environment) == expected


async def test_the_watchdog_hears_from_the_main_loop(supervisor):
    """Beat after beat, for as long as the loop turns."""
    listener, name = supervisor
    listener.setblocking(False)
    environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000"}
    beating = asyncio.create_task(keep_watchdog_quiet(lambda: True, environment))
    for _ in range(3):
        async with asyncio.timeout(10):
            assert await asyncio.get_running_loop().sock_recv(listener, 100) == WATCHDOG.encode()
    beating.cancel()


@pytest.mark.looptime
async def test_the_watchdog_hears_nothing_while_something_hangs(supervisor):
    """The notifications start again afterwards."""
    listener, name = supervisor
    listener.setblocking(False)
    well = [True, False, False, True]
    environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000000"}
    beating = asyncio.create_task(keep_watchdog_quiet(lambda: well.pop(0), environment))
    await asyncio.sleep(35)
    beating.cancel()
    assert [listener.recv(100), listener.recv(100)] == [WATCHDOG.encode()] * 2
    with pytest.raises(BlockingIOError):
        listener.recv(100)
