"""What `muster demo` refuses before it starts anything, and how much it measures at once."""

import pytest

from muster_coordinator.local.demo_plan import at_once


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json", "/proc/none/outcome.json"], "--json: cannot write /proc/none/outcome.json: No such file"),
        (["--config", "/proc/none/muster.toml"], "settings: cannot read /proc/none/muster.toml"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(muster, tmp_path, arguments, words):
    """With exit code 64 and a sentence, and without anything left behind."""
    done = muster("demo", *arguments, env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (64, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("cores", "nodes"), [(1, "2"), (2, "2"), (3, "3"), (64, "64")])
def test_the_sweep_measures_no_more_nodes_at_once_than_there_are_cores(cores, nodes):
    """Pairs that share a core look slow by chance; one pair must do on any host."""
    assert at_once(cores) == nodes
