"""A third party's plugin, installed with pip, works like a built-in one; so does a broken one."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from muster import Measurement, Reference, Severity
from muster.references import applicable

PACKAGE = Path(__file__).parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A directory that holds the installed distribution and nothing else; no network is used."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "muster_disk.py"):
        shutil.copy(PACKAGE / name, source)
    target = tmp_path_factory.mktemp("site")
    offline = ("--no-index", "--no-deps", "--no-build-isolation")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", target, source]
    subprocess.run(pip, check=True, timeout=120)
    return target


@pytest.fixture
def environment(site, tmp_path):
    return {"PYTHONPATH": str(site), "MUSTER_DATA_DIR": str(tmp_path)}


def test_it_is_listed_with_its_distribution(muster, environment):
    """`plugin list` tells where it comes from and what it brings."""
    done = muster("plugin", "list", "--json", env=environment)
    disk = next(item for item in json.loads(done.stdout)["items"] if item["name"] == "disk")
    assert disk == {
        "name": "disk",
        "distribution": "muster-disk",
        "version": "1.0",
        "status": "loaded",
        "error": None,
        "checks": ["disk"],
    }


def test_its_check_runs(muster, environment, tmp_path):
    """`check run` runs it in a child like any other, and its verdict is the exit code."""
    done = muster("check", "run", "disk", "--param", f"path={tmp_path}", "--json", env=environment)
    run = json.loads(done.stdout)["items"][0]
    assert (run["check"], run["params"]) == ("disk", {"path": str(tmp_path)})
    share = run["metrics"]["free_share"]
    assert 0 <= share <= 1
    assert done.returncode == {"PASS": 0, "WARN": 1, "FAIL": 2}[run["verdict"]]
    assert [each["code"] for each in run["findings"]] == (["disk.full"] if share < 0.1 else [])


def test_its_check_is_judged_by_an_operators_reference(muster, environment, tmp_path):
    """It replaces the reference that comes with the check."""
    references = tmp_path / "references.toml"
    references.write_text('[[reference]]\ncheck = "disk"\nmetric = "free_share"\nfail_below = 2\nsource = "us"\n')
    done = muster("check", "run", "disk", "--json", env={**environment, "MUSTER_REFERENCES_FILE": str(references)})
    (found,) = json.loads(done.stdout)["items"][0]["findings"]
    assert (done.returncode, found["code"], found["evidence"]["source"]) == (2, "disk.full", "us")


def test_its_params_are_checked_by_the_settings(muster, environment):
    """A third party's parameters are held to its model, too."""
    done = muster("config", "check", env={**environment, "MUSTER_CHECKS__DISK__PARAMS": '{"pat": "/"}'})
    assert done.returncode == 64
    assert "unknown parameter of disk 'pat'; did you mean 'path'?" in done.stderr


@pytest.mark.parametrize(
    ("code", "problem"), [("disk.full", ""), ("disk.ful", "unknown finding code 'disk.ful'; did you mean 'disk.full'?")]
)
def test_a_policy_with_a_typo_in_its_code_is_refused(muster, environment, tmp_path, code, problem):
    """Because the check lists its findings; a row with the right code is accepted."""
    policy = tmp_path / "policy.toml"
    policy.write_text(f'[[row]]\nname = "full"\ncodes = ["{code}"]\nreason = "jobs fail on a full disk"\n')
    done = muster("config", "check", env={**environment, "MUSTER_QUARANTINE__POLICY_FILE": str(policy)})
    assert done.returncode == (64 if problem else 0), done.stderr
    assert problem in done.stderr


def test_a_reference_for_a_metric_that_it_does_not_judge_is_refused(muster, environment, tmp_path):
    """Because the check lists what it judges."""
    references = tmp_path / "references.toml"
    references.write_text('[[reference]]\ncheck = "disk"\nmetric = "fre_share"\nfail_below = 0.1\nsource = "us"\n')
    done = muster("config", "check", env={**environment, "MUSTER_REFERENCES_FILE": str(references)})
    assert done.returncode == 64
    assert "'fre_share'; did you mean 'free_share'?" in done.stderr


def test_broken_it_hurts_nobody(muster, site, tmp_path):
    """The same plugin, broken at import, is listed as failed; the others are loaded."""
    broken = shutil.copytree(site, tmp_path / "broken")
    (broken / "muster_disk.py").write_text("raise SystemExit('out of order')")
    done = muster("plugin", "list", "--json", env={"PYTHONPATH": str(broken)})
    status = {item["name"]: (item["status"], item["error"]) for item in json.loads(done.stdout)["items"]}
    assert done.returncode == 0
    assert status["disk"] == ("failed", "SystemExit: out of order")
    assert status["gemm"] == ("loaded", None)


@pytest.fixture(scope="module")
def muster_disk():
    spec = importlib.util.spec_from_file_location("muster_disk", PACKAGE / "muster_disk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("share", "severity"), [(0.5, None), (0.05, Severity.WARNING), (0.01, Severity.ERROR)])
def test_judging(muster_disk, share, severity):
    """The share of free space is judged by the reference that comes with the check."""
    own = applicable(muster_disk.DISK.references, "disk", {})
    findings = muster_disk.judge(Measurement(metrics={"free_share": share}), own)
    assert [finding.severity for finding in findings] == ([severity] if severity else [])


def test_an_operators_reference_counts_more(muster_disk):
    """Whoever runs the fleet may ask for more."""
    strict = Reference(check="disk", metric="free_share", fail_below=0.9, source="policy")
    findings = muster_disk.judge(Measurement(metrics={"free_share": 0.5}), {"free_share": strict})
    assert [finding.severity for finding in findings] == [Severity.ERROR]
