"""What is known: what is typical, which runs were bad, what each node has shown.

Must not decide who is at fault. Start with `evidence.py`.
"""
