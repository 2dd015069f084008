"""The idle probe `slurm`: whether a job has this node, as `squeue` tells.

A job has it from the moment that Slurm chooses the node until its epilog has ended there: while the node boots for it
(CONFIGURING), runs it, keeps it suspended with all that it has in the GPUs' memory, and cleans up after it
(COMPLETING). squeue is not asked for these states by name: it would leave out a running job that is stopped, resized or
signalled. Unasked it shows all but those that have ended, and of these a node is given to none that waits.

The job in which the agent runs itself, if it does, is no foreign work: whoever started it there gave it the node.

Where users see only their own jobs (PrivateData=jobs), the agent's must be one who sees all: squeue leaves out the
others without a word.
"""

import os

from muster import Idleness
from muster_plugins.shared.programs import TimedOut, run_program

_TIMEOUT_S = 0.8
"""A probe has a second. slurmctld may take longer when it is very busy, and then nobody knows."""


class Unanswered(Exception):
    """squeue does not tell; the text says why."""


def probe(squeue: str, node: str, _own: frozenset[int]) -> Idleness:
    """BUSY while a job other than our own has the node; Unanswered or NotRun when squeue does not tell."""
    return Idleness.BUSY if _jobs_on(node, squeue) - {os.environ.get("SLURM_JOB_ID")} else Idleness.IDLE


def _jobs_on(node: str, squeue: str) -> set[str]:
    """The ids of the jobs that have the node, each element of an array by its own."""
    question = ["--all", "--local", f"--nodelist={node}", "--noheader", "--format=%A"]
    try:
        done = run_program([squeue, *question], timeout_s=_TIMEOUT_S, env=_no_preferences())
    except TimedOut as late:
        silence = f"slurmctld did not answer within {_TIMEOUT_S:g} s"
        raise Unanswered(f"{silence}: {_last_line(late.said)}" if late.said else silence) from None
    jobs = done.stdout.split()
    if done.exit_code != 0 or done.truncated or not all(job.isdigit() for job in jobs):
        raise Unanswered(_last_line(done.stderr or done.stdout) or f"squeue ended with {done.exit_code}")
    return set(jobs)


def _no_preferences() -> dict[str, None]:
    """Takes away the variables by which people have squeue show less, such as SQUEUE_USERS, or ask other clusters."""
    return {name: None for name in os.environ if name.startswith("SQUEUE_") or name == "SLURM_CLUSTERS"}


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
