"""The idle probe `slurm`: whether a job has this node, from the output of `squeue`.

A job has the node from the moment that Slurm chooses the node until the epilog of the job has ended there: while the
node boots for it (CONFIGURING), runs it, keeps it suspended with its memory on the GPUs, and cleans up after it
(COMPLETING). The probe does not pass these states to squeue, because that would leave out a running job that is
stopped, resized or signalled. Without a list of states, squeue shows all jobs that have not ended, and a waiting job
has no node.

The job in which the agent itself runs does not count, because the agent was started there to have the node. If users
see only their own jobs (PrivateData=jobs), the agent needs a user that sees all. Otherwise squeue silently leaves jobs
out.
"""

import os
from collections.abc import Sequence

from muster import Idleness
from muster_plugins.schedulers.slurm.scontrol import TRIES
from muster_plugins.shared.programs import Completed, TimedOut, run_program

_TIMEOUT_S = 0.8
"""A probe has one second for all tries. A busy slurmctld may take longer; then the answer is unknown."""


class SqueueUnanswered(Exception):
    """squeue does not answer; the text says why."""


def probe(squeue: str, node: str, _own: frozenset[int]) -> Idleness:
    """BUSY while a job other than our own has the node. Raises SqueueUnanswered or NotRun if squeue does not answer."""
    return Idleness.BUSY if _jobs_on(node, squeue) - {os.environ.get("SLURM_JOB_ID")} else Idleness.IDLE


def _jobs_on(node: str, squeue: str) -> set[str]:
    """The ids of the jobs that have the node, each element of an array by its own."""
    done = _asked([squeue, "--all", "--local", f"--nodelist={node}", "--noheader", "--format=%A"])
    jobs = done.stdout.split()
    if done.exit_code != 0 or done.truncated or not all(job.isdigit() for job in jobs):
        raise SqueueUnanswered(_last_line(done.stderr or done.stdout) or f"squeue ended with {done.exit_code}")
    return set(jobs)


def _asked(question: Sequence[str]) -> Completed:
    """What squeue answers. Raises SqueueUnanswered if it does not answer in time."""
    said = ""
    for _ in range(TRIES):
        try:
            return run_program(question, timeout_s=_TIMEOUT_S / TRIES, env=_no_preferences())
        except TimedOut as late:
            said = _last_line(late.said)
    silence = f"slurmctld did not answer within {_TIMEOUT_S:g} s"
    raise SqueueUnanswered(f"{silence}: {said}" if said else silence)


def _no_preferences() -> dict[str, None]:
    """The environment without variables such as SQUEUE_USERS, which make squeue hide jobs or ask other clusters."""
    return {name: None for name in os.environ if name.startswith("SQUEUE_") or name == "SLURM_CLUSTERS"}


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
