"""Which executables may be run."""

from pathlib import Path

import pytest

from muster_plugins.checks.script.trust import distrust


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "bin" / "check"
    path.parent.mkdir(mode=0o755)
    path.write_text("#!/bin/sh\n", encoding="ascii")
    path.chmod(0o755)
    return path


def test_an_executable_that_only_its_owner_can_write_is_trusted(script):
    """Also through a symbolic link, and below a sticky directory such as /tmp."""
    link = script.parent / "link"
    link.symlink_to(script)
    assert distrust(script) is None
    assert distrust(link) is None
    script.parent.chmod(0o1777)
    assert distrust(script) is None


def test_what_everybody_can_write_is_not(script):
    """Neither the file nor any directory on the way to it, or to what a link leads to."""
    link = script.parent.parent / "link"
    link.symlink_to(script)
    script.chmod(0o757)
    assert distrust(script) == f"every user can write to {script}: chmod o-w {script}"
    script.chmod(0o755)
    script.parent.chmod(0o777)
    assert distrust(script) == distrust(link) == f"every user can write to {script.parent}: chmod o-w {script.parent}"


def test_a_link_that_everybody_could_replace_is_not(script, tmp_path):
    """Also where it stands in the middle of the way, and both its ends can be trusted."""
    middle = tmp_path / "open" / "middle"
    middle.parent.mkdir()
    middle.symlink_to("../bin")
    start = tmp_path / "start"
    start.symlink_to(middle / "check")
    assert distrust(start) is None
    middle.parent.chmod(0o777)
    assert distrust(start) == f"every user can write to {middle.parent}: chmod o-w {middle.parent}"


def test_what_is_no_executable_is_not(script):
    """A directory, a file that may not be run, one that is not there, links in a circle, a relative path."""
    assert distrust(script.parent) == f"{script.parent} is not an executable file"
    script.chmod(0o644)
    assert distrust(script) == f"{script} is not an executable file"
    script.unlink()
    assert distrust(script) == f"{script} cannot be examined: No such file or directory"
    script.symlink_to(script)
    assert "cannot be examined" in (distrust(script) or "")
    assert distrust(Path("check")) == "must be an absolute path"
