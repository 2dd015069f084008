"""A fleet on one host: the parts of muster as child processes, for `muster up` and `muster demo`.

The parts are started by their command lines and spoken to over HTTP, so nothing here imports the agent.
"""
