"""The policy that the guide shows can be used as it stands."""

import re
from pathlib import Path

from muster import plugins
from muster.config import Config, Settings
from muster_coordinator.runtime.settings.known_findings import known_findings
from muster_coordinator.runtime.settings.policy_file import read_policy

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "policy.md"


def test_the_rows_of_the_guide_are_right(tmp_path):
    """Against the checks that come with muster, and each in front of the shipped rows."""
    (shown,) = re.findall(r"^```toml\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    path = tmp_path / "policy.toml"
    path.write_text(shown)
    checks = plugins.collect_checks(plugins.load(Config(Settings())))
    rows = read_policy(path, known_findings(checks)).rows
    assert [row.name for row in rows[:5]] == [
        "silent",
        "driver-of-october",
        "slower-and-slower",
        "results",
        "convicted",
    ]
    assert "port-errors" not in [row.name for row in rows]
