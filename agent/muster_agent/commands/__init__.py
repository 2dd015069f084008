"""The agent's sub-commands of the command line."""
