"""Acceptance of one node or of all nodes of a job: `muster check run` and `muster preflight`, without the coordinator.

A suite is a list of steps, and a step is a check with parameters. On one node the steps run one after the other. In a
job (under torchrun, srun or a Kubernetes operator), the process with rank 0 leads: over one TCP port it tells all
members the next step, collects their runs, and reports.

Must not import the daemon or the link to the broker. Start with `procedure.py`.
"""
