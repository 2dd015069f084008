"""What is decided about nodes: their cases, the transitions with their outcomes, and the log of all decisions."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the tables; a node that is stored gets its case when the coordinator starts."""
    op.create_table("cases", sa.Column("node", sa.Text, primary_key=True), sa.Column("body", sa.Text, nullable=False))
    op.create_table(
        "actions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("actions_by_time", "actions", ["at", "id"])
    op.create_index("actions_by_node", "actions", ["node", "at", "id"])
    op.create_table(
        "quarantine_log",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("quarantine_log_by_epoch", "quarantine_log", ["epoch", "number"])


def downgrade() -> None:
    """Drops them: nodes keep their service states, and nobody knows any more why."""
    for table in ("quarantine_log", "actions", "cases"):
        op.drop_table(table)
