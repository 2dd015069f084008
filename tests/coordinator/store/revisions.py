"""Schemas of earlier releases."""

from alembic import command
from alembic.config import Config


def downgrade(connection, revision):
    """Brings a database down to the schema of an earlier release."""
    config = Config()
    config.set_main_option("script_location", "muster_coordinator.store:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.downgrade(config, revision)
