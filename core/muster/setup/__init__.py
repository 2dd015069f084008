"""What `muster init` writes: the complete configuration of a fleet, in one directory.

Start with `answers.py`, what the operator says about the fleet. `plan.py` makes files of it and knows no disk.
`authority.py` issues certificates, `kubernetes.py` makes the Secrets, `directory.py` writes everything.
"""
