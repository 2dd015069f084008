"""How much more likely a fault makes the runs of a part than chance does: the bound that every conviction must reach.

`chance.py`: what runs of a kind show without a fault, learned from this sweep. `likelihood_ratio.py`: what they show if
a part is bad, the ratio of both, and the bound. `track_records.py`: the ratio of a node over several sweeps. Must not
convict anyone. Start with `likelihood_ratio.py`.
"""
