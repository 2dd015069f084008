"""The guide's lines for a shell are right: each does in a real Slurm what the guide says."""

import re
import subprocess
from pathlib import Path

import pytest

from muster import Transition
from muster.model import ServiceState
from muster_plugins.schedulers.slurm.decision import decide
from muster_plugins.schedulers.slurm.nodes import read_nodes

GUIDE = Path(__file__).parents[4] / "docs" / "how-to" / "slurm.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_lines_can_be_run(nodes, block):
    """One after the other."""
    done = subprocess.run(["sh", "-ec", block], env=nodes.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_the_lines_of_a_dry_run_are_those_that_muster_runs(nodes):
    """The guide shows the arguments of its own updates."""
    uuid = "GPU-5c1d2e3f-1111-2222-3333-444455556666"
    cause = {"code": "nvml.xid", "device": 3, "uuid": uuid, "xid": 79, "summary": "XID 79, GPU has fallen off the bus"}
    told = {"id": "t17-4", "node": "gpu1", "before": "IN_SERVICE", "after": "CORDONED", "at": 1.0}
    found = {"causes": [cause], "action": "REBOOT_NODE", "reason": "A GPU is lost"}
    transition = Transition.model_validate(told | found)
    (block,) = [block for block in BLOCKS if "t17-4" in block]
    for line, after in zip(block.splitlines(), (ServiceState.CORDONED, ServiceState.IN_SERVICE), strict=True):
        (node,) = read_nodes(nodes.scontrol("--oneliner", "show", "node", "gpu1"))
        update = decide(node, transition.model_copy(update={"after": after}), "x").update
        assert line.replace("'", "").endswith(" ".join(f"{key}={value}" for key, value in update.items()))
        nodes.scontrol("update", "NodeName=gpu1", *(f"{key}={value}" for key, value in update.items()))
