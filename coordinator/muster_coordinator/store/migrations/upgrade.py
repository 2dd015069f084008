"""Upgrades a database to this program's schema."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from muster.errors import Unavailable


def upgrade(connection: Connection) -> None:
    """Applies every revision that the database lacks, or none. Raises Unavailable if it has a revision unknown here."""
    config = Config()
    config.set_main_option("script_location", "muster_coordinator.store:migrations")
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    present = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if present is not None and present not in known:
        raise Unavailable(
            f"the database has schema {present}, written by a newer muster; this one knows schemas up to "
            f"{scripts.get_current_head()}: install the newer muster or set store.url to another database"
        )
    if present != scripts.get_current_head():  # else it would read every revision again to find nothing to do
        if connection.dialect.name == "sqlite":
            # Python's driver begins no transaction for a change of the schema: a full disk would leave half of it.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
