"""What `muster doctor` looks at on every host: certificates, clock, disk and the way to the broker.

Start with `setup_finding.py`. The agent and the coordinator add what only they need, through entry points in the group
`muster.doctors`: a function `(settings, plugins) -> AsyncIterator[SetupFinding]` for each role.
"""
