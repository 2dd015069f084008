"""From reports to health: the coordinator's knowledge of each node, and the findings against it. Pure.

Must not import sweeps or the quarantine. Events for them gather in the registry as news. Start with `registry.py` (the
nodes of the fleet), then `report_intake.py` (deduplication, quotas) and `health.py`. `evidence_records.py` says what a
restart starts from.
"""
