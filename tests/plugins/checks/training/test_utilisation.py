"""Utilisation as NVML reports it to a training."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json, threading, time
from muster import Device
from muster_plugins.checks.training.utilisation import sampled
from muster_plugins.shared.torch_device import CPU, Place

found = [Place(0, "cuda:1", "H100"), Place(1, "cuda:0", "H100"), Place(2, "cuda:2", "H100")]
devices = [Device(index=index, uuid=f"GPU-stub-{index}", model="H100") for index in (0, 1, 7)]
with sampled(found, devices) as samples:
    while not samples[0] and threading.active_count() > 1:  # the sampler ends where there is no driver
        time.sleep(0.01)
with sampled([CPU], ()) as none:
    pass
print(json.dumps([sorted({sample.percent for sample in each}) for each in (*samples, *none)]))
"""


def percents(state_file, nvml_stub, **state):
    """The different values that a process gets for three devices and the CPU, where NVML says `state`."""
    state_file.write_text("".join(f"{key}={value}\n" for key, value in state.items()), encoding="utf-8")
    environment = os.environ | {"LD_LIBRARY_PATH": str(nvml_stub), "STUB_NVML_STATE": str(state_file)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=30
    )
    return json.loads(done.stdout)


def test_each_device_has_its_own(nvml_stub, tmp_path):
    """It is found by its UUID, whatever CUDA's number is; one that NVML does not know has none."""
    state = {"devices": 2, "utilisation_0": 97, "utilisation_1": 55}
    assert percents(tmp_path / "state", nvml_stub, **state) == [[97], [55], [], []]


def test_without_a_driver_there_is_none(nvml_stub, tmp_path):
    """That is no end of the training."""
    assert percents(tmp_path / "state", nvml_stub, devices=2, init=9) == [[], [], [], []]
