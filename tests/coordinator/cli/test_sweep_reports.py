import asyncio
import csv
import http.client
import io
import json
import xml.etree.ElementTree as ET
from urllib.parse import urlsplit

import pytest


@pytest.fixture
def sweep(coordinator, muster):
    """Runs `muster sweep …` against the coordinator."""

    async def run(*arguments):
        return await asyncio.to_thread(muster, "sweep", *arguments, env=coordinator.env)

    return run


@pytest.fixture
async def ended(sweep, coordinator, nodes):
    """The record of a sweep of four nodes that has convicted n2."""
    async with nodes(coordinator, "n1", "n2", "n3", "n4") as them:
        them["n2"].verdict = "FAIL"
        done = await sweep("start", "--check", "collective", "--strategy", "pairs", "--wait", "--json")
    assert done.returncode == 2, done.stderr
    return json.loads(done.stdout)


async def test_what_was_judged_can_be_read_again(sweep, coordinator, ended, tmp_path):
    """The report, every group, why a node was convicted, and all formats, on stdout or in a file."""
    shown = (await sweep("show", ended["id"])).stdout
    assert "failed node n2 (confidence 0." in shown
    assert "\nround 1\n" in shown

    why = await sweep("show", ended["id"], "--why", "n2")
    assert why.stdout.startswith("n2 is at fault (collective.failed, confidence 0.")
    assert "n2 found collective.bad: it is bad" in why.stdout
    explained = json.loads((await sweep("show", ended["id"], "--why", "n2", "--json")).stdout)
    assert explained == coordinator.get(f"/api/v1/sweeps/{ended['id']}/explain?node=n2")

    assert json.loads((await sweep("export", ended["id"], "--format", "json")).stdout) == ended
    table = list(csv.DictReader(io.StringIO((await sweep("export", ended["id"], "--format", "csv")).stdout)))
    assert {row["node"] for row in table} == {"n1", "n2", "n3", "n4"}
    assert "# Avg bus bandwidth    : 10" in (await sweep("export", ended["id"], "--format", "nccl-tests")).stdout
    file = tmp_path / "sweep.svg"
    written = await sweep("export", ended["id"], "--format", "matrix", "--output", str(file))
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    assert ET.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg"


TYPES = {"json": "application/json", "csv": "text/csv", "nccl-tests": "text/plain", "matrix": "image/svg+xml"}

WRONG = {
    ("show", "none", "--why", "n1"): "no sweep 'none'",
    ("show", "{id}", "--why", "n22"): "did you mean 'n2'?",
    ("show", "{id}", "--why", "no such name"): "node",
    ("export", "none", "--format", "csv"): "no sweep 'none'",
    ("export", "{id}"): "--format",
    ("export", "{id}", "--format", "png"): "'nccl-tests' or 'matrix'",
    ("export", "{id}", "--format", "csv", "--output", "/proc/none/sweep.csv"): "--output: cannot write",
}


async def test_exports_are_files_and_wrong_usage_is_one_line(sweep, coordinator, ended):
    """Browsers show no export as a page of the coordinator's; refusals exit with 64, and without a traceback."""
    for form, kind in TYPES.items():
        connection = http.client.HTTPConnection(urlsplit(coordinator.url).netloc, timeout=20)
        connection.request("GET", f"/api/v1/sweeps/{ended['id']}/export?format={form}")
        response = connection.getresponse()
        assert (response.status, response.headers.get_content_type()) == (200, kind)
        assert response.headers["Content-Disposition"].startswith(f'attachment; filename="sweep-{ended["id"]}.')
        connection.close()
    for arguments, message in WRONG.items():
        refused = await sweep(*(argument.format(id=ended["id"]) for argument in arguments))
        assert (refused.returncode, refused.stdout) == (64, ""), arguments
        assert message in refused.stderr
        assert len(refused.stderr.splitlines()) == 1, refused.stderr
