"""Defaults that commands need before any settings model is imported: that takes longer than they take to run."""

HTTP_LISTEN = "127.0.0.1:8787"
"""Where the coordinator's API listens."""

DATA_DIR = "~/.local/share/muster"
"""Where outbox, database and the coordinator's own token are kept."""
