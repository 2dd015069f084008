"""The agent's sub-commands of the command line. Each file is named after its command.

Must not decide what runs when: a command reads its options, then starts the daemon or the acceptance. Start with
`agent.py`; `check.py` is the acceptance.
"""
