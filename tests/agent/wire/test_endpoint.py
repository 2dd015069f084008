"""The HTTP endpoint on loopback."""

import asyncio
import os
import socket
import subprocess
import sys

import aiohttp
import pytest
from tests.cases import cases

from muster.errors import SettingsError, Unavailable
from muster.model import Run, Verdict
from muster_agent.wire.endpoint import MOST_HEAD_BYTES, read_token, serving
from muster_agent.wire.metrics import AgentMetrics


async def fetch(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()


async def exchange(port: int, *parts: bytes) -> bytes:
    """All that the server sends to a client that sends `parts`, each as a packet of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0)
    answer = await reader.read()
    writer.close()
    return answer


async def test_healthz_says_in_which_state_the_agent_is():
    """Port 0 takes any free port, which is told."""
    async with serving("127.0.0.1:0", lambda: {"broker_connected": False}, AgentMetrics("n1")) as port:
        assert await fetch(port, "/healthz") == (200, '{"broker_connected": false}')


async def test_metrics_count_runs_by_check_and_verdict():
    """In Prometheus' text format."""
    metrics = AgentMetrics("n1")
    metrics.running.set_function(lambda: 2.0)
    metrics.dropped({"gemm": 3})
    metrics.run_ended(Run(id="r", node="n", check="gemm", verdict=Verdict.FAIL, started_at=1.0, duration_s=0.3))
    async with serving("127.0.0.1:0", dict, metrics) as port:
        status, text = await fetch(port, "/metrics")
    assert status == 200
    assert 'muster_agent_runs_total{check="gemm",verdict="FAIL"} 1.0' in text
    assert 'muster_agent_run_duration_seconds_bucket{check="gemm",le="0.5"} 1.0' in text
    assert 'muster_agent_outbox_dropped{check="gemm"} 3.0' in text
    assert "muster_agent_running 2.0" in text


@cases(
    ("name", "path", "header", "begin"),
    [
        ("metrics without a token", "/metrics", "", b"HTTP/1.0 401 "),
        ("another token", "/metrics", "Authorization: Bearer other", b"HTTP/1.0 401 "),
        ("another scheme", "/metrics", "Authorization: Basic secret", b"HTTP/1.0 401 "),
        ("bytes that are no text", "/metrics?a=b", "Authorization: Bearer \xff", b"HTTP/1.0 401 "),
        ("the token", "/metrics", "Authorization: bearer secret", b"HTTP/1.0 200 OK"),
        ("a supervisor", "/healthz", "", b"HTTP/1.0 200 OK"),
        ("another path", "/", "", b"HTTP/1.0 404 "),
    ],
)
async def test_metrics_need_the_token_if_there_is_one(name, path, header, begin):
    """A refusal says how to send it, and shows no metric."""
    async with asyncio.timeout(5), serving("127.0.0.1:0", dict, AgentMetrics("n1"), "secret") as port:
        answer = await exchange(port, f"GET {path} HTTP/1.1\r\n{header}\r\n\r\n".encode("latin-1"))
    assert answer.startswith(begin), name
    if b" 401 " in begin:
        assert b'WWW-Authenticate: Bearer realm="muster"\r\n' in answer
        assert answer.endswith(b"\r\n\r\nsend the token of agent.token_file as `Authorization: Bearer TOKEN`\n")


@cases(("text", "problem"), [(None, "cannot read"), ("\n", "is empty")])
def test_a_token_that_cannot_be_used_is_refused(text, problem, tmp_path):
    """An agent with an empty token would let everybody in."""
    path = tmp_path / "token"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match=f"agent.token_file: .*{problem}"):
        read_token(path)


async def test_a_port_that_is_taken_is_refused_with_what_to_change():
    """The message names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unavailable, match=r"agent\.listen"):
            async with serving(listen, dict, AgentMetrics("n1")):
                raise AssertionError("not reached")


@cases(
    ("name", "sent", "begin"),
    [
        ("a head in pieces", [b"GET /hea", b"lthz HTTP/1.1\r\nHost: a\r\n", b"\r\n"], b"HTTP/1.0 200 OK"),
        ("a query", [b"GET /healthz?verbose=1 HTTP/1.1\r\n\r\n"], b"HTTP/1.0 200 OK"),
        ("another path", [b"GET / HTTP/1.1\r\n\r\n"], b"HTTP/1.0 404 Not Found"),
        ("another method", [b"POST /metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"], b"HTTP/1.0 501 "),
        ("not HTTP", [b"\x16\x03\x01\x02\r\n\r\n"], b""),
        ("an endless head", [b"GET / HTTP/1.1\r\nA: " + b"a" * MOST_HEAD_BYTES], b"HTTP/1.0 431 "),
        ("too many headers", [b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n"], b"HTTP/1.0 431 "),
    ],
)
async def test_each_request_gets_one_answer_and_the_connection_ends(name, sent, begin):
    """Whatever the client sends."""
    async with asyncio.timeout(5), serving("127.0.0.1:0", dict, AgentMetrics("n1")) as port:
        answer = await exchange(port, *sent)
    assert answer.startswith(begin), name
    assert b"Traceback" not in answer


async def test_head_gets_the_length_without_the_body():
    """As HTTP asks."""
    async with asyncio.timeout(5), serving("127.0.0.1:0", lambda: {"outbox": 0}, AgentMetrics("n1")) as port:
        answer = await exchange(port, b"HEAD /healthz HTTP/1.1\r\n\r\n")
    assert b"Content-Length: 13\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


async def test_open_connections_end_with_the_server():
    """A client that sends nothing does not stay connected."""
    async with asyncio.timeout(5):
        async with serving("127.0.0.1:0", dict, AgentMetrics("n1")) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await exchange(port, b"GET /healthz HTTP/1.1\r\n\r\n")  # accepted after the first
        assert await reader.read() == b""
        writer.close()


def test_an_agent_loads_neither_aiohttp_nor_rich_nor_what_drives_gpus():
    """They take 15 MiB and more on every node."""
    program = (
        "import atexit, sys; sys.argv = ['muster', 'agent']\n"
        "atexit.register(lambda: print(*sys.modules))\n"
        "from muster.cli import main; main()"
    )
    variables = {**os.environ, "MUSTER_DATA_DIR": "/dev/null/nowhere"}  # so it ends as soon as all is imported
    called = [sys.executable, "-c", program]
    done = subprocess.run(called, capture_output=True, text=True, env=variables, check=False, timeout=60)
    modules = {name.partition(".")[0] for name in done.stdout.split()}
    assert "cannot use /dev/null/nowhere" in done.stderr
    assert "paho" in modules
    assert not modules & {"aiohttp", "rich", "torch", "pynvml"}
