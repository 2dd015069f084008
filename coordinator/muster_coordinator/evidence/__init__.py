"""From reports to health: what the coordinator knows of each node, and what stands against it. Pure.

Must not know sweeps or the quarantine. What they have to hear of a node gathers in the registry as news.
Start with `registry.py` (the nodes of the fleet), then `report_intake.py` (deduplication, quotas) and `health.py`.
"""
