"""What the guide to scripts shows works as it stands."""

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

from muster.config import Config, Settings
from muster.plugins import GROUP, collect_checks, load
from muster_coordinator.runtime.settings.known_findings import known_findings
from muster_coordinator.runtime.settings.policy_file import read_policy
from muster_plugins.checks.script.output import read_output

GUIDE = (Path(__file__).parents[4] / "docs" / "how-to" / "scripts.md").read_text(encoding="utf-8")


def shown(language: str) -> list[str]:
    """The blocks of a language in the guide."""
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_settings_and_the_row_of_the_policy(tmp_path):
    """The coordinator takes both, on a host that has none of the scripts."""
    settings, row = shown("toml")
    config = Config(Settings.model_validate(tomllib.loads(settings)))
    checks = collect_checks(load(config, entry_points(group=GROUP, name="script")))
    assert set(checks) == {"script.nhc", "script.load"}
    policy = tmp_path / "policy.toml"
    policy.write_text(row, encoding="utf-8")
    assert read_policy(policy, known_findings(checks)).rows[0].codes == ("script.nhc.failed",)


def test_the_output():
    """It is read as metrics and a finding."""
    (text,) = shown("json")
    output = read_output(text, performance_data=False)
    assert output.metrics == {"wear_percent": 12, "temperature_c": [41, 43]}
    assert [finding.code for finding in output.findings] == ["wear"]
