"""Watches NVML for the tests, in a process of its own, as the resident child does: in a thread, while others read.

Says `heard` on stdout whenever the watch returns, and for each line on stdin which XIDs stand against which device.
"""

import json
import sys
from threading import Lock, Thread

from muster_plugins.checks.nvml.session import NvmlSession, Unusable

session = NvmlSession()
speaking = Lock()


def say(what: object) -> None:
    with speaking:
        print(json.dumps(what), flush=True)


def watch() -> None:
    while True:
        session.watch()
        say("heard")


def read() -> object:
    try:
        reading = session.read(xid_window_s=60.0)
    except Unusable as error:
        return error.word
    return {str(device.index): device.xids for device in reading.devices if device.xids}


Thread(target=watch, daemon=True).start()
for _ in sys.stdin:
    say(read())
