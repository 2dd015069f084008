"""What `muster demo` refuses before it starts anything."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json", "/proc/none/outcome.json"], "--json: cannot write /proc/none/outcome.json: No such file"),
        (["--config", "/proc/none/muster.toml"], "cannot read the settings file /proc/none/muster.toml"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(muster, tmp_path, arguments, words):
    """With exit code 64 and a sentence, and without anything left behind."""
    done = muster("demo", *arguments, env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (64, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.iterdir()]
