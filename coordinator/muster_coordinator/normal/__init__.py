"""Normal values: baselines over the fleet and over each device's own history, and values out of line. Pure.

Must not import the health of nodes, sweeps or the quarantine: it takes numbers and returns findings. Start with
`baselines.py`, which chooses the runs that can be compared; `baseline.py` compares one metric.
"""
