"""What `muster config check` says about the quarantine."""

import asyncio
import time

import pytest

from muster.config import Settings
from muster.model import Action, Finding, Run, Severity, Verdict
from muster_coordinator.model.events import StoreRuns
from muster_coordinator.store.store import Store

LOST = Finding(code="nvml.device_lost", summary="gone", severity=Severity.ERROR, action=Action.REBOOT_NODE)


@pytest.fixture
def config_check(muster, tmp_path):
    """Runs `muster config check` with the table [quarantine] and an operator's rows."""

    def run(table="", rows="", **environment):
        policy, settings = tmp_path / "policy.toml", tmp_path / "muster.toml"
        policy.write_text(rows)
        file = f'policy_file = "{policy}"' if rows else ""
        settings.write_text(f'data_dir = "{tmp_path}"\n[quarantine]\n{table}\n{file}\n')
        return muster("config", "check", "--config", str(settings), env=environment)

    return run


async def keep(data_dir, *runs):
    store = await Store.open(Settings(data_dir=data_dir))
    await store.write([StoreRuns(run.node, "s", run.seq, (run,)) for run in runs])
    await store.close()


def lost(node, at):
    return Run(
        id=node, node=node, check="nvml", verdict=Verdict.FAIL, findings=(LOST,), started_at=at, duration_s=1.0, seq=1
    )


def test_the_policy_is_told_in_words(config_check):
    """The operator's rows in front of those that come with muster."""
    done = config_check(rows='[[row]]\nname = "hot"\ncodes = ["nvml.too_hot"]\nproof = "ONCE"\nreason = "too hot here"')
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[1].startswith("  1. hot: out of service (urgency 50), found once")
    assert lines[2] == "     too hot here [the operator]"
    assert lines[3].startswith("  2. convicted: ")
    assert lines[-2:] == ["Not replayed: there is no history here yet", "OK"]


def test_the_policy_is_rehearsed_on_what_is_stored(config_check, tmp_path):
    """Of the last 30 days, and with the policy that is in effect."""
    now = time.time()
    asyncio.run(keep(tmp_path, lost("n1", now - 60), lost("n2", now - 31 * 86_400)))
    done = config_check()
    assert "this policy would have required draining for 1 of 0 nodes" in done.stdout
    assert "nvml.device_lost  gpu-lost" in done.stdout
    kept = config_check(rows='[[row]]\nname = "leave"\ncodes = ["nvml.*"]\nservice = "IN_SERVICE"\nreason = "ours"')
    assert "this policy would have required draining for 0 of 0 nodes" in kept.stdout
    assert "n1    nvml.device_lost  policy row leave does not drain" in kept.stdout


def test_a_rehearsal_goes_no_further_back_than_what_is_kept(config_check, tmp_path):
    """Runs that found nothing belong to it as well, and the answer says how far back it has looked."""
    asyncio.run(keep(tmp_path, lost("n1", time.time() - 6 * 86_400)))
    done = config_check(MUSTER_STORE__KEEP_DAYS="5")
    assert "In the last 5 days this policy would have required draining for 0 of 0 nodes" in done.stdout
    assert "In the last 30 days this policy would have required draining for 1 of 0 nodes" in config_check().stdout


def test_wrong_tests_are_refused(config_check):
    """Before the coordinator is started with them, and not only then."""
    done = config_check('tests = [{ check = "gem" }]')
    assert (done.returncode, done.stdout) == (64, "")
    assert "setting 'quarantine.tests': unknown check 'gem'; did you mean 'gemm'?" in done.stderr


def test_a_wrong_policy_is_refused_with_all_else_that_is_wrong(config_check):
    """The file, the row and what would be right are told, beside other problems."""
    done = config_check(
        rows='[[row]]\nname = "hot"\ncodes = ["nvml.hot"]\nreason = "x"', MUSTER_CHECKS__GEM__INTERVAL_S="1"
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert "policy.toml, row hot: unknown finding code 'nvml.hot'; did you mean 'nvml.too_hot'?" in done.stderr
    assert "unknown check 'checks.gem'" in done.stderr


def test_a_database_that_cannot_be_read_is_only_told(config_check):
    """The settings may be right all the same."""
    done = config_check(MUSTER_STORE__URL="postgresql://muster:hush@127.0.0.1:1/muster")
    assert done.returncode == 0, done.stderr
    assert "Not replayed: " in done.stdout
    assert "hush" not in done.stdout


ALL_STAY = '[[row]]\nname = "all"\ncodes = ["*"]\nservice = "IN_SERVICE"\nreason = "ours"'
ENFORCE = 'mode = "enforce"\nbudget = {}'


@pytest.mark.parametrize("rows", ["replace = true", ALL_STAY])
def test_a_policy_that_takes_nothing_out_is_refused_only_where_it_counts(config_check, rows):
    """Who enforces it would wait for ever; who only looks is told."""
    refused = config_check(ENFORCE, rows)
    assert (refused.returncode, refused.stdout) == (64, "")
    assert "policy.toml: no row can drain a node" in refused.stderr
    told = config_check(rows=rows)
    assert told.returncode == 0, told.stderr
    assert "Note: this policy never drains a node, so mode = enforce would refuse it" in told.stdout
    assert "never drains a node" not in config_check(ENFORCE).stdout


def test_rows_that_can_never_decide_do_not_seem_to(config_check):
    """An operator's row may take all that shipped ones match; what it leaves them still counts."""
    lines = config_check(rows=ALL_STAY).stdout.splitlines()
    assert lines[3] == "  2. convicted: never decides: row all before it takes all that it matches"
    assert any(". host: stays in service: WARNING and ERROR host.*" in line for line in lines)


def test_a_slip_in_a_condition_is_asked_about(config_check):
    """It is not refused, as any check may have such evidence; a key that is like no other is left alone."""
    row = '[[row]]\nname = "gone"\ncodes = ["nvml.xid"]\nreason = "gone"\nwhen = {{ {} = 79 }}'
    for key, asked in (("xidd", True), ("XID", True), ("xid", False), ("sxid", False), ("bound", False)):
        done = config_check(rows=row.format(key))
        assert done.returncode == 0, done.stderr
        assert (f"Note: row gone: '{key}' is not a usual key of evidence; did you mean " in done.stdout) is asked


@pytest.mark.parametrize(("table", "told"), [(ENFORCE, True), ('mode = "dry-run"', True), ("", False)])
def test_that_no_actor_was_asked_is_told(config_check, table, told):
    """OK does not mean that there is one."""
    done = config_check(table)
    assert done.returncode == 0, done.stderr
    assert ("Note: actors are not checked here." in done.stdout) is told


def test_a_wrong_topology_file_is_refused(muster, tmp_path):
    """With or without a table [quarantine]: the coordinator would not start with it."""
    topology, absent = tmp_path / "topology.toml", tmp_path / "absent"
    topology.write_text('[racks]\nr1 = "n[1-"')
    for file, said in [(topology, f"topology_file: {topology}: "), (absent, f"topology_file: cannot read {absent}: ")]:
        done = muster("config", "check", env={"MUSTER_TOPOLOGY_FILE": str(file)})
        assert (done.returncode, done.stdout) == (64, "")
        assert done.stderr.startswith(f"muster: {said}")
