"""The tests that the settings want nodes to pass."""

import asyncio
from importlib.metadata import EntryPoint, entry_points

import pytest

from muster.config import Config, Settings
from muster.errors import SettingsError
from muster.plugins import GROUP, collect_checks, load
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator import daemon
from muster_coordinator.runtime.settings.acceptance import require_tests


@pytest.fixture(scope="module")
def checks():
    """All checks that are installed here."""
    return collect_checks(load(Config(Settings()), entry_points(group=GROUP)))


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"tests": [{"check": "gemm", "params": {"size": 256}}, {"check": "collective"}]},
        {"returning": {"partners": 1}},
        {"returning": {"sweep": "training_ddp"}},
    ],
)
def test_what_can_be_passed(checks, rules):
    """Checks of either scope as tests, with their own parameters, and those of groups as sweeps."""
    require_tests(QuarantineSettings.model_validate(rules), checks)


WRONG = {
    "tests": [{"check": "gem"}, {"check": "gemm", "params": {"sise": 1}}, {"check": "gemm", "params": {"size": "x"}}],
    "returning": {"sweep": "gemm"},
}


def test_all_that_is_wrong_is_told_with_what_would_be_right(checks):
    """Unknown checks and parameters, impossible values, and a sweep with what is measured on one node."""
    with pytest.raises(SettingsError) as refused:
        require_tests(QuarantineSettings.model_validate(WRONG), checks)
    name, parameter, value, sweep = str(refused.value).splitlines()
    assert "setting 'quarantine.tests': unknown check 'gem'; did you mean 'gemm'?" in name
    assert "setting 'quarantine.tests': unknown parameter of gemm 'sise'; did you mean 'size'?" in parameter
    assert "setting 'quarantine.tests': parameter of gemm 'size': " in value
    assert "setting 'quarantine.returning.sweep': unknown check of scope GROUP 'gemm' (valid: collective" in sweep


def test_a_sweep_that_is_not_there_is_refused(checks):
    """With the name that is near."""
    rules = QuarantineSettings.model_validate({"returning": {"partners": 1, "sweep": "colective"}})
    with pytest.raises(SettingsError, match="'colective'; did you mean 'collective'"):
        require_tests(rules, checks)


def test_a_sweep_that_nobody_wants_may_be_missing():
    """As where its plugin is switched off: without partners there is none."""
    require_tests(QuarantineSettings(), {})


def test_any_check_may_be_named_where_not_all_are_known():
    """As when a plugin has failed to load."""
    require_tests(QuarantineSettings.model_validate(WRONG), None)


async def test_the_coordinator_does_not_start_with_them(tmp_path):
    """It refuses them before it opens anything."""
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "quarantine": WRONG})
    with pytest.raises(SettingsError, match="unknown check 'gem'"):
        await daemon.serve(settings, load(Config(settings), entry_points(group=GROUP)), asyncio.Event())
    assert not (tmp_path / "data").exists()


async def test_the_coordinator_starts_where_a_plugin_has_failed(tmp_path):
    """The tests may be with its checks."""
    free = {"listen": "127.0.0.1:0"}
    settings = Settings.model_validate({"data_dir": tmp_path, "http": free, "broker": free, "quarantine": WRONG})
    plugins = load(Config(settings), [EntryPoint("broken", "no_such_module", GROUP)])
    stop = asyncio.Event()
    stop.set()
    await asyncio.wait_for(daemon.serve(settings, plugins, stop), 20)
