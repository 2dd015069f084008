"""The check `collective` on a real GPU, through the command line. Alone on a node, the group is its GPUs."""

from typing import Any

import pytest

pytestmark = pytest.mark.gpu


def is_skipped(run: Any) -> bool:
    """Whether this node has one GPU only, which has nothing to exchange with."""
    found = [finding["summary"] for finding in run["findings"] if finding["code"] == "run.skipped"]
    assert all(reason.startswith("a collective over one rank measures nothing: ") for reason in found), found
    return bool(found)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast"])
def test_every_collective_goes_over_nccl_and_is_right(check_run, collective):
    """At sizes from latency to bandwidth."""
    sizes = ("--param", "begin_bytes=1K", "--param", "end_bytes=64M", "--param", "factor=256")
    run = check_run("collective", "--param", f"collective={collective}", *sizes)
    if is_skipped(run):
        return
    assert run["verdict"] == "PASS", run["findings"]
    assert run["facts"]["backend"] == "nccl"
    assert run["facts"]["simulated"] is False
    assert run["metrics"]["wrong_elements"] == 0
    assert 0 < run["metrics"]["latency_us"] < 10_000
    assert run["metrics"]["algbw_gbps"] > 1
    assert len(run["facts"]["report"]["results"]) == 3


def test_each_size_gives_its_memory_back(check_run):
    """A sweep that only fits where no size keeps what the one before it had; NCCL says how it was done."""
    sizes = ("--param", "begin_bytes=8", "--param", "end_bytes=4G", "--param", "factor=8", "--param", "iterations=3")
    run = check_run("collective", "--param", "collective=all_gather", *sizes)
    if is_skipped(run):
        return
    assert run["verdict"] == "PASS", run["findings"]
    assert run["metrics"]["wrong_elements"] == 0


def test_a_message_that_does_not_fit_the_gpu_is_refused_with_what_would(check_run):
    """By its free memory."""
    run = check_run("collective", "--param", "size_bytes=1000G")
    (finding,) = run["findings"]
    assert finding["code"] == "collective.too_large"
    assert finding["evidence"]["fits_bytes"] > 1 << 30
