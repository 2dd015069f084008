"""The check `memory` on a real GPU, through the command line."""

import pytest

pytestmark = pytest.mark.gpu


def test_memory_is_sound_and_fast(check_run):
    """No word comes back wrong, a device's own memory is faster than what PCIe brings, and a good share is tested."""
    run = check_run("memory")
    codes = {finding["code"] for finding in run["findings"]}
    assert not codes & {"memory.corrupt", "memory.out_of_memory", "memory.device_failed"}, run["findings"]
    metrics = run["metrics"]
    assert metrics["wrong_words"] == [0] * len(run["facts"]["devices"])
    assert min(metrics["tested_bytes"]) > 4 << 30
    assert min(metrics["copy_gbps"]) > 4 * max(metrics["to_device_gbps"])
    assert min(metrics["to_device_gbps"] + metrics["to_host_gbps"]) > 3


def test_triad_and_copy_agree(check_run):
    """Both count what is read and written, so they tell about the same speed."""
    metrics = check_run("memory", "--quick", "--param", 'parts=["bandwidth"]')["metrics"]
    assert 0.7 < metrics["triad_gbps"][0] / metrics["copy_gbps"][0] < 1.4


def test_buffers_that_do_not_fit_are_no_fault_of_the_device(check_run):
    """The finding says how much is free."""
    run = check_run("memory", "--param", 'parts=["bandwidth"]', "--param", f"size_bytes={1 << 40}")
    assert run["verdict"] == "UNKNOWN"
    (finding,) = [each for each in run["findings"] if each["code"] == "memory.out_of_memory"][:1]
    assert finding["evidence"]["free_bytes"] > 0
