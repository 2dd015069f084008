"""`muster check run --send` and `muster check send`, from the command line to what the coordinator serves."""

import asyncio
import json

import pytest
from benchmarks.free_ports import free_port
from tests.coordinator.web.acceptances import acceptance

from muster.acceptance import AcceptanceReport
from muster_coordinator.web.guard import ACCEPTANCE, Access
from muster_coordinator.web.sessions import Right

RUN = ("check", "run", "host", "--send")


@pytest.fixture
def access():
    return Access("operate", Right.PROBE, "of http.token_file", "read", "report")


@pytest.fixture
def command(muster, tmp_path, monkeypatch):
    """Runs a command of muster with a token, in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    async def run(*arguments, url, token="report"):
        (tmp_path / "token").write_text(token)
        where = ("--url", url, "--token-file", str(tmp_path / "token"))
        return await asyncio.to_thread(lambda: muster(*arguments, *where))

    return run


async def served(api):
    """The reports that the coordinator has."""
    headers = {"Authorization": "Bearer read"}
    _, listed = await api.ask("GET", ACCEPTANCE, headers=headers)
    answers = [await api.ask("GET", f"{ACCEPTANCE}/{item['id']}", headers=headers) for item in listed["items"]]
    return [(record["id"], AcceptanceReport.model_validate(record["report"])) for _, record in answers]


async def test_a_run_sends_its_report(api, command, tmp_path):
    """It is the report that is in the file, and the command says where it is shown."""
    done = await command(*RUN, "--report-dir", str(tmp_path), "--report-name", "r", url=api.url)
    ((sent_as, report),) = await served(api)
    assert f"sent: {api.url}/acceptance/{sent_as}" in done.stderr
    assert report == AcceptanceReport.model_validate_json((tmp_path / "r.json").read_text())
    assert [run.check for run in report.runs] == ["host"]


async def test_a_preflight_sends_its_report(api, command):
    """With what it has decided about each node."""
    done = await command("preflight", "--suite", "prolog", "--send", url=api.url)
    ((sent_as, report),) = await served(api)
    assert f"sent: {api.url}/acceptance/{sent_as}" in done.stderr
    assert [each.node for each in report.conclusions] == [node.name for node in report.nodes]


async def test_a_file_is_sent_later(api, command, tmp_path):
    """As often as one likes. A compressed body arrives whole."""
    large = acceptance(*(f"n{number}" for number in range(64)), failed={"n3"})
    (tmp_path / "r.json").write_text(large.model_dump_json(indent=2))
    for _ in range(2):
        done = await command("check", "send", "r.json", url=api.url)
        assert (done.returncode, done.stderr) == (0, "")
    ((sent_as, report),) = await served(api)
    assert (done.stdout, report) == (f"sent: {api.url}/acceptance/{sent_as}\n", large)


async def test_a_report_that_cannot_be_sent_is_not_lost(command, tmp_path):
    """Before the runs it is a warning; after them the report is in a file, and the message says how to send it."""
    done = await command(*RUN, "--fail-on", "fail", url=f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 69, done.stderr
    assert "the report is sent when it is ready" in done.stderr
    (path,) = tmp_path.glob("muster-report-*.json")
    assert f"written: {path.name}; send it later: muster check send {path.name}" in done.stderr
    assert [run["check"] for step in json.loads(path.read_text())["steps"] for run in step["runs"]] == ["host"]


@pytest.mark.parametrize(("token", "said"), [("read", "may only read"), ("wrong", "send the token")])
async def test_a_token_that_does_not_do_is_said_before_the_runs(api, command, token, said, tmp_path):
    """Nothing is run for hours, whose report nobody would take."""
    done = await command(*RUN, url=api.url, token=token)
    assert (done.returncode, done.stdout) == (64, "")
    assert said in done.stderr
    assert not list(tmp_path.glob("muster-report-*"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "r.json is no report; give the .json file"),
        ("<html>", "r.json is no report"),
        (None, "cannot read r.json: No such file or directory"),
        (acceptance("n1").model_dump_json().replace('"PASS"', '"FAIL"', 1), "verdict: is FAIL, and PASS follows"),
    ],
)
async def test_a_file_that_is_no_report_is_refused(api, command, content, said, tmp_path):
    """The message says what is wrong with it."""
    if content is not None:
        (tmp_path / "r.json").write_text(content)
    done = await command("check", "send", "r.json", url=api.url)
    assert (done.returncode, done.stdout) == (64, "")
    assert said in done.stderr
