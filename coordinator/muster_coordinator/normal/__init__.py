"""What is normal: baselines over the fleet and over each device's own history, and what is out of line. Pure.

Must not know nodes' health, sweeps or the quarantine: it takes numbers and gives findings.
Start with `baselines.py`, which chooses what can be compared; `baseline.py` compares one metric.
"""
