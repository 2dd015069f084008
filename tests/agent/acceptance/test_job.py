"""Which job a process is one of, by the environment it was given."""

import pytest

from muster.errors import Refused
from muster_agent.acceptance.job import AcceptanceJob, detect, first_host, tasks_on_node

OPERATOR = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "job-master-0", "MASTER_PORT": "23456"}
TORCHRUN = OPERATOR | {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
SRUN = {
    "SLURM_JOB_ID": "40012",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_STEP_NODELIST": "gpu[03-04]",
    "SLURM_STEP_TASKS_PER_NODE": "4,2",
}

JOBS = [
    ({}, None),
    (OPERATOR, AcceptanceJob(rank=1, size=2, local_rank=0, local_size=1, address="job-master-0", port=23456)),
    (TORCHRUN, AcceptanceJob(rank=1, size=2, local_rank=1, local_size=2, address="job-master-0", port=23457)),
    (
        TORCHRUN | {"MASTER_PORT": "37027"},
        AcceptanceJob(rank=1, size=2, local_rank=1, local_size=2, address="job-master-0", port=27027),
    ),
    (SRUN, AcceptanceJob(rank=5, size=6, local_rank=1, local_size=2, address="gpu03", port=20012)),
    (
        SRUN | {"MASTER_ADDR": "10.0.0.9", "MASTER_PORT": "29500"},
        AcceptanceJob(rank=5, size=6, local_rank=1, local_size=2, address="10.0.0.9", port=29500),
    ),
    (OPERATOR | {"RANK": "0", "WORLD_SIZE": "1"}, None),
    ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
]


@pytest.mark.parametrize(("environment", "expected"), JOBS)
def test_the_job_is_read_from_the_environment(environment, expected):
    """Beside torchrun, which holds MASTER_PORT, the port is another. A batch script and a job of one are alone."""
    assert detect(environment) == expected


WRONG = [
    ({"RANK": "0"}, "WORLD_SIZE is not set"),
    (OPERATOR | {"RANK": "two"}, "RANK is 'two', which is not a number"),
    (OPERATOR | {"RANK": "2"}, "rank 2 does not exist in a job of 2"),
    ({key: value for key, value in OPERATOR.items() if key != "MASTER_ADDR"}, "MASTER_ADDR is not set"),
    (OPERATOR | {"MASTER_PORT": ""}, "MASTER_PORT is not set"),
    (OPERATOR | {"MASTER_PORT": "65536"}, "port 65536, which is not between 1 and 65535"),
    (OPERATOR | {"MASTER_PORT": "0"}, "MASTER_PORT gives port 0"),
    (OPERATOR | {"MASTER_ADDR": "job..local"}, "'job..local' is neither the name nor the address"),
    (OPERATOR | {"LOCAL_RANK": "1"}, "local rank 1 does not exist among the 1 processes on this node"),
    (OPERATOR | {"LOCAL_WORLD_SIZE": "0"}, "local rank 0 does not exist among the 0 processes on this node"),
    (SRUN | {"SLURM_STEP_TASKS_PER_NODE": "many"}, "does not say how many tasks"),
    (SRUN | {"SLURM_STEP_NODELIST": "[1-2]"}, "is not a list of hosts"),
]


@pytest.mark.parametrize(("environment", "reason"), WRONG)
def test_half_a_job_is_refused(environment, reason):
    """The message names the variable."""
    with pytest.raises(Refused, match=reason.replace("[", r"\[")):
        detect(environment)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("gpu1", "gpu1"), ("gpu[03-07,9],login", "gpu03"), ("a-1,b-2", "a-1"), ("r1n[2,4]-ib,x", "r1n2-ib")],
)
def test_the_first_host_of_slurms_list(nodes, first):
    """Ranges keep their leading zeros."""
    assert first_host(nodes) == first


@pytest.mark.parametrize(("tasks", "node", "count"), [("4", 0, 4), ("4(x2),3", 1, 4), ("4(x2),3", 2, 3), ("1,2", 1, 2)])
def test_how_many_tasks_a_node_has(tasks, node, count):
    """Slurm writes repeats as `(x2)`."""
    assert tasks_on_node(tasks, node) == count
