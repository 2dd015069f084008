"""The agent: the daemon on a node that runs checks and takes the node's part in groups. Imports only core."""
