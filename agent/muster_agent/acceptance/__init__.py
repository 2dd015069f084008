"""Acceptance of one machine or of all machines of a job: `muster check run`, without broker and coordinator.

A suite is a list of steps, and a step is a check with parameters. On one machine the steps run one after the other.
Where the process is one of a job (under torchrun, srun or a Kubernetes operator), the member with rank 0 leads: it
tells all members over one TCP port which step comes next, gathers what they found, and reports.

Start with `procedure.py`.
"""
