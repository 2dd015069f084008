"""The references of one machine's own file, through the real command line."""

import json

import pytest

ROW = """
[[reference]]
check = "simulated"
metric = "temperature_headroom_c"
when = {{ simulated = true }}
fail_below = {bound}
source = "a test"
"""


@pytest.fixture
def env(tmp_path):
    """Settings of a machine with a simulated device and a references file; `write` says what is in the file."""
    (tmp_path / "references.toml").write_text(ROW.format(bound=1000))
    return {
        "MUSTER_REFERENCES_FILE": str(tmp_path / "references.toml"),
        "MUSTER_DATA_DIR": str(tmp_path / "data"),
        "MUSTER_PLUGINS__DISABLED": '["nvml"]',
        "MUSTER_PLUGINS__SIMULATED__ENABLED": "true",
    }


def test_they_go_before_the_shipped_ones(muster, env):
    """A device that would pass fails by the operator's bound, and the finding says whose it is."""
    done = muster("check", "run", "simulated", "--json", env=env)
    (run,) = json.loads(done.stdout)["items"]
    assert (done.returncode, run["verdict"]) == (2, "FAIL"), done.stderr
    assert {(found["evidence"]["bound"], found["evidence"]["source"]) for found in run["findings"]} == {
        (1000, "a test")
    }


@pytest.mark.parametrize("command", [("agent",), ("check", "run", "simulated")])
def test_wrong_ones_are_refused_at_the_start(muster, env, tmp_path, command):
    """With the row, the key and what would be right; nothing is run."""
    text = ROW.format(bound=1) + ROW.format(bound='"1 K"') + ROW.format(bound=2).replace("simulated", "simulatd", 1)
    (tmp_path / "references.toml").write_text(text)
    done = muster(*command, env=env)
    assert (done.returncode, done.stdout) == (64, "")
    assert "references.toml, row 2: field 'fail_below': " in done.stderr
    assert "references.toml, row 3: unknown check 'simulatd'; did you mean 'simulated'?" in done.stderr
    assert "Traceback" not in done.stderr
