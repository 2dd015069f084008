"""What is expected of measurements: the operator's references of the fleet, and which one applied to a run. Pure.

Must not know sweeps or the quarantine. The rules by which a reference applies are in core (`muster.references`).
Start with `book.py`.
"""
