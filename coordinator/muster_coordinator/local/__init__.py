"""A fleet on one host: `muster demo` and `muster up`.

Must not import the daemons: it starts the coordinator and the agents as processes. Start with `demo.py` and `up.py`;
`processes.py` starts and stops the processes of both.
"""
