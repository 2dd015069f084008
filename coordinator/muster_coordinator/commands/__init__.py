"""The coordinator's sub-commands of the command line, and those that talk to its API."""
