"""Defaults and names of settings.

They are for commands that do not import the models of the settings, because the import takes longer than the command.
"""

HTTP_LISTEN = "127.0.0.1:8787"
"""Where the coordinator's API listens."""

DATA_DIR = "~/.local/share/muster"
"""The directory of the outbox, the database and the coordinator's own token."""

_KEYS = ("fleet", "node", "data_dir", "expected_gpus", "references_file", "topology_file", "topology_labels")
_TABLES = ("broker", "http", "store", "leader", "agent", "sweeps", "quarantine", "log", "checks", "suites", "plugins")
TABLES = frozenset((*_KEYS, *_TABLES))
"""The names of all settings and tables at the top of a settings file; a test compares them with the model."""
