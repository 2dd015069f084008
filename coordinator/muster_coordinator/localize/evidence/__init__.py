"""Evidence of a sweep: which values are typical, which runs were bad, and the history of each node.

Must not convict anyone. Start with `evidence.py`.
"""
