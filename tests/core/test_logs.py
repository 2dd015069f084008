"""Logs: on stderr, nothing on stdout, and no local variables in tracebacks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cases import cases

pytestmark = pytest.mark.usefixtures("live")

COLOURLESS = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}

PROGRAM = """
import logging, sys
import structlog
from muster import logs
from muster.config import LogSettings

logs.configure(LogSettings(format=sys.argv[1], level="info"), component="test")
log = structlog.get_logger()
log.debug("too_fine")
log.info("ready", port=80)
logging.getLogger("a.library").warning("from a library")
logging.getLogger("a.library").info("too fine")

def connect():
    password = "hunter" + "2"
    raise OSError("refused")

try:
    connect()
except OSError:
    log.exception("not_connected")
    logging.getLogger("a.library").exception("from a library too")
"""


@pytest.fixture(params=["json", "console"])
def logged(request):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, request.param], capture_output=True, text=True, timeout=60, check=True
    )
    return request.param, done


def test_logs_go_to_stderr_only(logged):
    """What is printed to stdout is the answer and nothing else."""
    _, done = logged
    assert done.stdout == ""
    assert "too" not in done.stderr.replace("from a library too", "")


def test_tracebacks_hold_no_local_variables(logged):
    """A secret in a variable stays out of the logs."""
    _, done = logged
    assert done.stderr.count("refused") >= 2
    assert "hunter2" not in done.stderr


def test_every_line_of_json_logs_is_json(logged):
    """Libraries' lines as well as our own are objects with event, level, timestamp and context."""
    form, done = logged
    if form == "console":
        assert "ready" in done.stderr
        return
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["ready", "from a library", "not_connected", "from a library too"]
    assert all({"level", "timestamp"} <= set(line) and line["component"] == "test" for line in lines)
    assert (lines[0]["port"], lines[1]["logger"]) == (80, "a.library")


REPEATING = """
import asyncio, logging, sys
from muster import log_limit, logs
from muster.config import LogSettings

logs.configure(LogSettings(format="json"), component="test")
loop = asyncio.new_event_loop()
for number in range(1000):
    loop.call_exception_handler({"message": "socket.accept() out of system resource", "socket": number})
    if number == 999:
        log_limit.PERIOD_S = 0
    logging.getLogger("aiohttp.server").error(f"Error handling request from {number}")
loop.close()
"""


def test_what_a_library_repeats_is_written_once_a_minute():
    """The next line says how many were left out. Lines of the same kind may differ in their details."""
    done = subprocess.run([sys.executable, "-c", REPEATING], capture_output=True, text=True, timeout=60, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["logger"], line.get("left_out")) for line in lines] == [
        ("asyncio", None),
        ("aiohttp.server", None),
        ("aiohttp.server", 998),
    ]


HOSTILE = """
import logging, sys
import structlog
from muster import logs
from muster.config import LogSettings

logs.configure(LogSettings(format=sys.argv[1]))
bad = chr(27) + "[2J" + chr(0x9b) + "1m" + chr(0x202e) + "x" + chr(10) + "2026-01-01 all is well"
log = structlog.get_logger()
log.warning(bad, text=bad, listed=[bad], table={bad: bad})
logging.getLogger("a").warning("%s", bad)
try:
    raise ValueError(bad)
except ValueError as error:
    log.exception("failed", error=error)
"""


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_log_sends_no_control_characters(form):
    """And no text from outside looks like a log line of its own, except inside a traceback."""
    done = subprocess.run([sys.executable, "-c", HOSTILE, form], capture_output=True, text=True, timeout=60, check=True)
    assert all(line.isprintable() for line in done.stderr.split("\n"))
    lines, _, _ = done.stderr.partition("Traceback")
    assert not any(line.startswith("2026-01-01 all") for line in lines.split("\n"))


@cases("environment, is_coloured", [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)])
def test_lines_on_a_terminal_have_colours_unless_forbidden(environment, is_coloured):
    """As what commands print."""
    ours, terminal = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as shown, os.fdopen(terminal, "wb", buffering=0) as stderr:
        program = [sys.executable, "-c", PROGRAM, "auto"]
        subprocess.run(program, stderr=stderr, env={**COLOURLESS, **environment}, timeout=60, check=True)
        assert (b"\x1b[" in shown.read(1 << 16)) is is_coloured


def test_a_log_that_cannot_be_written_ends_nothing():
    """Such as a file on a disk that is full; lines of libraries are lost as well."""
    program = (
        "import logging, structlog\n"
        "from muster.config import LogSettings\n"
        "from muster.logs import configure\n"
        "configure(LogSettings(format='json'))\n"
        "structlog.get_logger().error('lost')\n"
        "logging.getLogger('library').error('lost')\n"
        "print('alive', flush=True)\n"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=full, text=True, timeout=60, check=False
        )
    assert done.stdout == "alive\n"
