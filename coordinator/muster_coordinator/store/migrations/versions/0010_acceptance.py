"""Acceptance reports that nodes and jobs have sent."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "acceptance_reports",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("received_at", sa.Double, nullable=False),
        sa.Column("suite", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("acceptance_reports_by_time", "acceptance_reports", ["received_at", "id"])
    op.create_table(
        "acceptance_nodes",
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("report", sa.Text, primary_key=True),
    )
    op.create_index("acceptance_nodes_by_report", "acceptance_nodes", ["report"])


def downgrade() -> None:
    """Removes the tables with all reports."""
    op.drop_table("acceptance_nodes")
    op.drop_table("acceptance_reports")
