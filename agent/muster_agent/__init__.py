"""The agent: the daemon on a node that runs checks and takes its node's part in groups. Imports only core."""
