"""Reports are stored by plugins, without a coordinator: in a real S3 server, and again after it was away."""

import asyncio
import json

import pytest
from tests.agent.acceptance.test_report import run_of
from tests.coordinator.web.acceptances import acceptance
from tests.s3_server import SECRET, running_s3

from muster import ActionOutcome, Effect
from muster.acceptance import report, step_report
from muster.commands.verdict_exit import FailOn
from muster.errors import Refused, Unavailable
from muster.model import Inventory, Verdict
from muster_agent.acceptance.retries import PAUSES_S
from muster_agent.acceptance.storing import ACCESS, documents, store
from muster_agent.commands.check_run import ReportDelivery, RunOptions

TABLE = "#       size  busbw\n        1024   1.00"


def test_the_documents_are_the_forms_of_the_report():
    """Below a name from the time of the start and the first node."""
    found = documents(acceptance("n1", "n2", failed=("n2",)))
    place = "acceptances/2023-11-14/221320.000-n1"
    assert [each.key for each in found] == [f"{place}/report.{ending}" for ending in ("json", "xml", "html", "txt")]
    contents = {each.key.rpartition(".")[2]: each.content for each in found}
    assert json.loads(contents["json"])["suite"] == "full"
    assert contents["txt"].splitlines()[:2] == ["== ENV", "nvml           FAIL         2.5 s"]
    assert "  n2: ERROR nvml.xid on device 3: GPU has fallen off the bus (REBOOT_NODE)\n" in contents["txt"]
    assert contents["txt"].endswith("full: FAIL, 2 nodes, 61.5 s\n")


def test_tables_of_nccl_tests_are_a_document_of_their_own():
    """One for each step that has one; all nodes of its group have the same."""
    runs = [run_of("collective", Verdict.PASS, node=node, facts={"table": TABLE}) for node in ("n1", "n2")]
    steps = [
        step_report("ENV", "nvml", "errors", [run_of("nvml", Verdict.PASS, node="n1")]),
        step_report("COLLECTIVE", "collective", "sums", runs),
    ]
    *_, tables = documents(report("sweep", steps, {"n1": Inventory(), "n2": Inventory()}, 0.0, 1.0))
    assert tables.key == "acceptances/1970-01-01/000000.000-n1/nccl-tests.txt"
    assert tables.content == f"# collective: PASS, nodes: 2\n{TABLE}\n"


def storing(plugins_with, *outcomes):
    """Plugins of which one stores documents, with these outcomes one after the other; and the documents it got."""
    got, left = [], [*outcomes]

    async def muster_artifacts(config, artifacts):
        got.append(artifacts)
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return plugins_with({}, {"muster_artifacts": muster_artifacts}), got


STORED = ActionOutcome(effect=Effect.DONE, detail="stored 4 documents")
AWAY = ActionOutcome(effect=Effect.FAILED, detail="s3://kept: connection refused")


@pytest.mark.parametrize("problem", [AWAY, OSError("no route"), "stored"], ids=["failed", "raised", "no outcome"])
def test_it_is_tried_again_after_pauses(plugins_with, problem):
    """With the same documents, whatever has gone wrong."""
    plugins, got = storing(plugins_with, problem, problem, STORED)
    pauses: list[float] = []

    async def pause(seconds):
        pauses.append(seconds)

    assert asyncio.run(store(plugins, documents(acceptance("n1")), pause)) == "throwaway: stored 4 documents"
    assert got == [documents(acceptance("n1"))] * 3
    assert all(0 <= pause <= longest for pause, longest in zip(pauses, PAUSES_S, strict=False))
    assert len(pauses) == 2


def test_the_last_attempt_says_why(plugins_with):
    """After as many pauses as there are."""
    plugins, got = storing(plugins_with, *[AWAY] * 4)

    async def pause(seconds):
        pass

    with pytest.raises(Unavailable, match="not stored: throwaway: s3://kept: connection refused"):
        asyncio.run(store(plugins, (), pause))
    assert len(got) == 1 + len(PAUSES_S)


def test_without_a_plugin_that_stores_it_is_refused(plugins_with):
    """At once, with the setting that is missing."""
    plugins, got = storing(plugins_with, None)
    with pytest.raises(Refused, match=r"set plugins\.artifacts\.url"):
        asyncio.run(store(plugins, (ACCESS,)))
    assert got == [(ACCESS,)]


def test_a_report_that_cannot_be_stored_is_kept_in_a_file(plugins_with, monkeypatch, tmp_path, capsys):
    """Although the store was there when the runs began. The exit code says that something is missing."""
    monkeypatch.setattr("muster_agent.acceptance.retries.PAUSES_S", (0.0,))
    plugins, got = storing(plugins_with, STORED, AWAY, AWAY)
    options = RunOptions(tmp_path, "report", None, True, False, False, 120.0, FailOn.WARN, False)
    delivery = ReportDelivery(True, options, plugins)

    async def run():
        await delivery.prepare()
        await delivery.deliver(acceptance("n1"))

    asyncio.run(run())
    assert got[0] == (ACCESS,)
    assert delivery.exit_code == 69
    assert (tmp_path / "report.json").exists()
    told = capsys.readouterr()
    assert told.out.endswith("full: PASS, 1 node, 61.5 s\n")
    assert "muster: not stored: throwaway: s3://kept: connection refused\n" in told.err


@pytest.fixture
def s3(live, monkeypatch):
    with running_s3(monkeypatch) as server:
        yield server


@pytest.fixture
def accepting(s3, muster, tmp_path):
    """Runs a command with `--store` on a simulated node that has the bucket in its settings."""
    settings = tmp_path / "muster.toml"
    settings.write_text(
        f'fleet = "blue"\nnode = "n1"\ndata_dir = "{tmp_path}"\n[plugins.simulated]\nenabled = true\ndevices = 1\n'
        f'[plugins.artifacts]\nurl = "s3://kept/reports"\nendpoint = "{s3.url}"\n'
        '[suites.short]\nsteps = [{ section = "ENV", check = "simulated" }]\n'
    )
    return lambda *arguments: muster(*arguments, "--store", "--config", str(settings))


@pytest.mark.parametrize("command", ["check run simulated", "preflight --suite short"])
def test_a_report_is_in_the_bucket(accepting, s3, command):
    """Below the prefix and the name of the fleet; stderr says where."""
    done = accepting(*command.split())
    assert done.returncode == 0, done.stderr
    *keys, access = s3.stored()
    assert access == f"reports/blue/{ACCESS.key}"
    assert [key.rpartition("/")[2] for key in keys] == ["report.html", "report.json", "report.txt", "report.xml"]
    place = keys[0].removeprefix("reports/blue/").rpartition("/")[0]
    assert place.startswith("acceptances/")
    assert f"stored: {place} (artifacts: stored 4 documents)\n" in done.stderr


def test_without_a_store_nothing_is_run(accepting, s3):
    """It is tried a few times; then the command ends, and shows no secret."""
    s3.kill()
    done = accepting("check", "run", "simulated")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith("muster: not stored: artifacts: s3://kept/reports/blue/acceptances/access.txt: ")
    assert SECRET not in done.stderr
