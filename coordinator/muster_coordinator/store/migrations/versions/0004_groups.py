"""The groups of sweeps get their own table, so that a change in one group does not write all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the table; stored sweeps keep their groups in their own record."""
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
