"""How the agent starts: what it imports and reads before it forks the launcher."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

PROGRAM = """
import sys
from muster import references
from muster.config import Settings
from muster_agent.commands.start import start
from muster_agent.runs import launcher

def fork(plugins, checks):
    print(references.shipped.cache_info().currsize, *sys.modules)
    sys.exit()

launcher.launch = fork
start(Settings())
"""


@pytest.mark.usefixtures("live")
def test_the_launcher_is_forked_when_all_is_imported():
    """Pages that are written to before the fork count once for the three processes, others once for each."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    references_read, *modules = done.stdout.splitlines()[-1].split()
    assert references_read == "1"
    assert {"muster_agent.daemon", "aiomqtt", "prometheus_client", "sqlite3"} <= set(modules)
    assert not {"difflib", "pynvml", "torch"} & set(modules)


ONLY_A_COORDINATOR_NEEDS = {
    "muster.alarm",
    "muster.artifact",
    "muster.leader_lock",
    "muster.node_health",
    "muster.transition",
    "muster_plugins.checks.script.actor",
    "muster_plugins.notifiers.webhook.notice",
    "muster_plugins.schedulers.kubernetes.node",
    "muster_plugins.schedulers.slurm.scontrol",
}

ONLY_A_RUN_NEEDS = {
    "muster_plugins.checks.collective.operations",
    "muster_plugins.checks.dcgm.report",
    "muster_plugins.checks.gemm.product",
    "muster_plugins.checks.memory.pattern",
    "muster_plugins.checks.nccl_tests.output",
    "muster_plugins.checks.script.output",
    "muster_plugins.checks.storage.fio",
    "muster_plugins.shared.collectives.table",
    "muster_plugins.shared.torch_device",
    "muster_plugins.shared.torch_group",
}


@pytest.mark.usefixtures("live")
def test_an_agent_keeps_no_code_that_it_does_not_run_at_rest():
    """With default settings, what acts on schedulers and what measures once in hours is not imported at the start."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    _, *modules = done.stdout.splitlines()[-1].split()
    assert not (ONLY_A_COORDINATOR_NEEDS | ONLY_A_RUN_NEEDS) & set(modules)


@pytest.mark.parametrize("module", sorted(ONLY_A_COORDINATOR_NEEDS | ONLY_A_RUN_NEEDS))
def test_what_is_not_kept_exists(module):
    """A module that was renamed would never be found among the imported ones."""
    assert find_spec(module) is not None
