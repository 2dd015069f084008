"""The check `memory` on a real GPU, through the command line."""

import pytest

pytestmark = pytest.mark.gpu


def test_memory_is_sound_and_fast(check_run):
    """No word comes back wrong, and a device's own memory is faster than what PCIe brings."""
    run = check_run("memory", "--param", "share=0.1", "--param", "rounds=1")
    codes = {finding["code"] for finding in run["findings"]}
    assert not codes & {"memory.corrupt", "memory.out_of_memory", "memory.device_failed"}, run["findings"]
    metrics = run["metrics"]
    assert metrics["wrong_words"] == [0] * len(run["facts"]["devices"])
    assert min(metrics["tested_bytes"]) > 1 << 30
    assert min(metrics["copy_gbps"]) > 4 * max(metrics["to_device_gbps"])
    assert min(metrics["to_device_gbps"] + metrics["to_host_gbps"]) > 3


def test_nearly_all_memory_can_be_tested(check_run):
    """After other parts have taken and given back memory, and with room left for the patterns themselves."""
    params = ("--param", 'parts=["bandwidth","pattern"]', "--param", "share=0.95", "--param", "rounds=1")
    run = check_run("memory", *params, "--param", 'patterns=["address"]')
    assert run["metrics"]["wrong_words"] == [0] * len(run["facts"]["devices"]), run["findings"]


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
