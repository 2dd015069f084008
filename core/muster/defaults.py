"""Defaults for commands that do not import any settings model, because the import takes longer than the command."""

HTTP_LISTEN = "127.0.0.1:8787"
"""Where the coordinator's API listens."""

DATA_DIR = "~/.local/share/muster"
"""The directory of the outbox, the database and the coordinator's own token."""
