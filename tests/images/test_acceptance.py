"""The image with the programs that acceptance suites call."""

import re

import pytest
from tests.images.containers import container


@pytest.fixture(scope="module")
def acceptance(store, bare, wheels):
    """Built with the package sources of the base: Debian has no program of NVIDIA."""
    return store.build("acceptance", "acceptance", wheels, offline=False)


def test_programs_come_from_the_sources_of_the_base(acceptance):
    """And nothing of the installation stays."""
    assert {"usr/bin/fio", "usr/bin/ib_write_bw", "usr/local/bin/muster"} <= acceptance.paths
    left = re.compile(r"acceptance-programs|nccl-tests|var/lib/apt/lists/.+|var/cache/apt/.+")
    assert [path for path in acceptance.paths if left.fullmatch(path)] == []


def test_what_cannot_be_had_is_named_at_build_time(acceptance, store):
    """With what to do about it."""
    named = re.findall(r"^acceptance: NOT INSTALLED: (\w+)", store.log("acceptance").read_text(), re.MULTILINE)
    assert named == ["dcgmi", "all_reduce_perf"]


def test_it_runs_the_full_suite_and_not_the_agent(acceptance, tmp_path):
    """As the same user: without GPUs and with nothing to expect, the quick suite ends without a FAIL."""
    assert acceptance.config["User"] == "64200:64200"
    assert acceptance.config["Cmd"] == ["check", "run", "--suite", "full"]
    with container(acceptance, tmp_path / "list", "check", "list") as process:
        assert process.wait(timeout=60) == 0
    assert "nccl_tests" in (tmp_path / "list" / "log").read_text()
