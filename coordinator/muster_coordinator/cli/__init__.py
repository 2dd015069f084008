"""The sub-commands of `muster` that start the coordinator or call its API. Each file is named after its command.

Must not decide anything about nodes or sweeps. Start with `node.py`, a command that asks the API and prints the answer;
`connection` in core's commands has the options with which commands find the coordinator.
"""
