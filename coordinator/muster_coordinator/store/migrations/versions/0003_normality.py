"""Baselines, and summaries in place of old runs."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates their tables."""
    op.create_table("baselines", sa.Column("id", sa.Text, primary_key=True), sa.Column("body", sa.Text, nullable=False))
    op.create_table(
        "device_levels",
        sa.Column("baseline", sa.Text, primary_key=True),
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "summaries",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("check", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("summaries_by_node", "summaries", ["node", "started_at", "id"])
    op.create_index("summaries_by_time", "summaries", ["started_at"])


def downgrade() -> None:
    """Drops their tables."""
    for table in ("summaries", "device_levels", "baselines"):
        op.drop_table(table)
