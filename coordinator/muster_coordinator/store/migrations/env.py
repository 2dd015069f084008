"""Run by Alembic for every upgrade. The connection comes from the store; there is no alembic.ini."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)

with context.begin_transaction():
    context.run_migrations()
