"""The groups of sweeps have a table of their own, so that what changes in one is not written with all."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the table; sweeps that are stored keep their groups in their own record."""
    op.create_table(
        "groups",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("sweep", sa.Text, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("groups_by_sweep", "groups", ["sweep", "round", "started_at"])


def downgrade() -> None:
    """Drops it, with the groups of all sweeps that began since."""
    op.drop_table("groups")
