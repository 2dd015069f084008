"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates every table."""
    op.create_table("meta", sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))
    op.create_table("nodes", sa.Column("name", sa.Text, primary_key=True), sa.Column("body", sa.Text, nullable=False))
    op.create_table(
        "streams",
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("stream", sa.Text, primary_key=True),
        sa.Column("through", sa.BigInteger, nullable=False),
    )
    _create_runs()
    op.create_table(
        "sweeps",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("sweeps_by_time", "sweeps", ["created_at", "id"])
    op.create_table(
        "story",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("story_by_node", "story", ["node", "number"])


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True, sqlite_on_conflict_primary_key="IGNORE"),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("check", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("duration_s", sa.Double, nullable=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("group", sa.Text),
        sa.Column("cause", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("node", "stream", "seq", name="runs_once", sqlite_on_conflict="IGNORE"),
    )
    op.create_index("runs_by_time", "runs", ["started_at", "id"])
    op.create_index("runs_by_node", "runs", ["node", "started_at", "id"])
    op.create_index("runs_by_check", "runs", ["check", "started_at", "id"])
    op.create_index("runs_by_verdict", "runs", ["verdict", "started_at", "id"])


def downgrade() -> None:
    """Drops every table."""
    for table in ("story", "sweeps", "runs", "streams", "nodes", "meta"):
        op.drop_table(table)
