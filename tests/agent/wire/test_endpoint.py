"""The HTTP endpoint on loopback."""

import socket

import aiohttp
import pytest

from muster.errors import Unavailable
from muster.model import Run, Verdict
from muster_agent.wire.endpoint import serving
from muster_agent.wire.metrics import AgentMetrics


async def fetch(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()


async def test_healthz_says_in_which_state_the_agent_is():
    """Port 0 takes any free port, which is told."""
    async with serving("127.0.0.1:0", lambda: {"broker_connected": False}, AgentMetrics()) as port:
        assert await fetch(port, "/healthz") == (200, '{"broker_connected": false}')


async def test_metrics_count_runs_by_check_and_verdict():
    """In Prometheus' text format."""
    metrics = AgentMetrics()
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


async def test_a_port_that_is_taken_is_refused_with_what_to_change():
    """The message names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unavailable, match=r"agent\.listen"):
            async with serving(listen, dict, AgentMetrics()):
                raise AssertionError("not reached")
