"""The example that starts a job after a preflight, under a real Slurm."""

import json

import pytest

JOB = "(sh -c 'echo works on $SLURMD_NODENAME')"


@pytest.fixture
def submitted(slurm, tmp_path):
    """Runs the script on both nodes for a job that needs `need` of them; the job's exit code, log and report."""

    def submit(need: int):
        script = slurm.example("preflight.sbatch", need=str(need), job=JOB)
        job = slurm.sbatch(f"--chdir={tmp_path}", "--nodes=2", "--gpus-per-node=2", script)
        code = slurm.ended(job)["ExitCode"]
        told = json.loads((tmp_path / f"preflight-{job}.json").read_text())
        return code, (tmp_path / f"preflight-{job}.log").read_text(), told

    return submit


def test_the_job_goes_on_with_a_spare(slurm, submitted):
    """Its first step is on the node that passed, although the batch script itself runs on the failed one."""
    slurm.put_fault("gpu1", kind="ecc")
    code, log, told = submitted(need=1)
    assert code == "0:0", log
    assert [line for line in log.splitlines() if line.startswith("works")] == ["works on gpu2"]
    decisions = [(each["node"], each["decision"]) for each in told["conclusions"]]
    assert decisions == [("gpu1", "REJECTED"), ("gpu2", "GO")]


def test_a_job_that_needs_all_nodes_does_not_start(slurm, submitted):
    """Slurm's accounting has an exit code that is not 0."""
    slurm.put_fault("gpu2", kind="ecc")
    code, log, _ = submitted(need=2)
    assert code == "5:0", log
    assert "works on" not in log
    assert "the job needs 2 nodes, and 1 passed" in log
