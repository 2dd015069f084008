"""What a real Prometheus takes to scrape the numbers of all nodes of a fleet, beside what the coordinator takes.

One port of this process answers for all nodes, each on a path of its own, with the numbers that the simulated agents
have. Prometheus scrapes each node as often as agents run their most frequent check. It judges nothing: it keeps
numbers.
"""

import asyncio
import json
import random
import shutil
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import psutil
from aiohttp import web
from benchmarks.free_ports import free_address
from benchmarks.scale_agents import node_name
from benchmarks.scale_parts import MIB, until
from benchmarks.scale_runs import NOISY
from benchmarks.scale_template import Template

from muster.errors import Unavailable

CONFIG = """
scrape_configs:
- job_name: fleet
  scrape_interval: {interval_s:g}s
  scrape_timeout: {interval_s:g}s
  file_sd_configs: [{{files: [{targets}]}}]
"""


class Scraped(NamedTuple):
    """The share of a core (%), memory, and samples a second."""

    share: float
    mib: float
    samples_per_s: float


class Exporters:
    """The exporters of all nodes on one port."""

    def __init__(self, template: Template) -> None:
        self._template = template
        self._random = random.Random(1)  # noqa: S311 (noise, no secret)
        self.scrapes = 0

    async def start(self, address: str) -> web.AppRunner:
        """Listens."""
        app = web.Application()
        app.router.add_get("/{node}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        host, port = address.split(":")
        await web.TCPSite(runner, host, int(port)).start()
        return runner

    async def _answer(self, _request: web.Request) -> web.Response:
        self.scrapes += 1
        return web.Response(text="".join(self.lines()))

    def lines(self) -> list[str]:
        """The answer for any node."""
        return list(self._lines())

    def _lines(self) -> Iterator[str]:
        for check, (run, _) in self._template.checks.items():
            for metric, value in run.metrics.items():
                factor = self._random.uniform(0.97, 1.03) if any(part in metric for part in NOISY) else 1.0
                numbers = enumerate(value) if isinstance(value, list) else [("", value)]
                for device, number in numbers:
                    if number is not None:
                        yield f'{check}_{metric}{{device="{device}"}} {number * factor:.6g}\n'


async def scrape(nodes: int, template: Template, directory: Path, settle_s: float, window_s: float) -> Scraped:
    """What a Prometheus takes that scrapes all nodes."""
    program = shutil.which("prometheus")
    if program is None:
        raise Unavailable("this comparison needs Prometheus: apt-get install prometheus")
    served, own = free_address(), free_address()
    interval_s = min(interval_s for _, interval_s in template.checks.values())
    targets = [
        {"targets": [served], "labels": {"__metrics_path__": f"/{name}", "instance": name}}
        for name in map(node_name, range(nodes))
    ]
    (directory / "targets.json").write_text(json.dumps(targets), encoding="utf-8")
    config = CONFIG.format(interval_s=interval_s, targets=directory / "targets.json")
    (directory / "prometheus.yml").write_text(config, encoding="utf-8")
    exporters = Exporters(template)
    async with AsyncExitStack() as stack:
        stack.push_async_callback((await exporters.start(served)).cleanup)
        arguments = f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data"
        process = await asyncio.create_subprocess_exec(
            program, *arguments, f"--web.listen-address={own}", stderr=asyncio.subprocess.DEVNULL
        )
        stack.push_async_callback(process.wait)
        stack.callback(process.terminate)

        async def has_seen_all() -> bool:
            return exporters.scrapes >= 2 * nodes

        await until(has_seen_all, 300.0)
        await asyncio.sleep(settle_s)
        measured = psutil.Process(process.pid)
        before, scrapes = sum(measured.cpu_times()[:2]), exporters.scrapes
        await asyncio.sleep(window_s)
        numbers = len(exporters.lines())
        return Scraped(
            share=100 * (sum(measured.cpu_times()[:2]) - before) / window_s,
            mib=measured.memory_info().rss / MIB,
            samples_per_s=(exporters.scrapes - scrapes) * numbers / window_s,
        )
