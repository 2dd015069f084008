"""References: the operator's references of the fleet, and the reference that applied to a run. Pure.

Must not import sweeps or the quarantine. Core (`muster.references`) has the rules by which a reference applies. Start
with `book.py`.
"""
