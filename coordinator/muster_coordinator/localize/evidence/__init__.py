"""Evidence of a sweep: which values are typical, which runs were bad, and the history of each node.

Must not decide who is at fault. Start with `evidence.py`.
"""
