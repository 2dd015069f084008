"""Decisions about nodes: their cases, the transitions with their outcomes, requests of people, and the log.

Entries of stories get their time, so that retention can delete old ones.
"""

import json
from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_AT_A_TIME = 5_000


def upgrade() -> None:
    """Creates the tables; a stored node gets its case when the coordinator starts."""
    op.create_table(
        "cases",
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("transition", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
    )
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
        "requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("node", sa.Text),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("requests_by_time", "requests", ["at", "id"])
    op.create_index("requests_by_node", "requests", ["node", "at", "id"])
    op.create_table(
        "quarantine_log",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("quarantine_log_by_epoch", "quarantine_log", ["epoch", "number"])
    op.create_index("quarantine_log_by_kind", "quarantine_log", ["kind", "number"])
    op.add_column("story", sa.Column("at", sa.Double))
    _date_the_story()
    with op.batch_alter_table("story") as story:
        story.alter_column("at", nullable=False)
    op.create_index("story_by_time", "story", ["at"])


def _date_the_story() -> None:
    """Updates some thousand entries at a time, because a large fleet has millions."""
    story = sa.table("story", sa.column("number"), sa.column("at"), sa.column("body"))
    undated = sa.select(story.c.number, story.c.body).order_by(story.c.number).limit(_AT_A_TIME)
    dated = story.update().where(story.c.number == sa.bindparam("entry")).values(at=sa.bindparam("moment"))
    last = 0
    while entries := op.get_bind().execute(undated.where(story.c.number > last)).all():
        op.get_bind().execute(dated, [{"entry": number, "moment": _moment(body)} for number, body in entries])
        last = entries[-1].number


def _moment(body: str) -> float:
    return datetime.fromisoformat(json.loads(body)["at"]).timestamp()


def downgrade() -> None:
    """Drops them: nodes keep their service states, and the reasons are lost."""
    for table in ("quarantine_log", "requests", "actions", "cases"):
        op.drop_table(table)
    op.drop_index("story_by_time", "story")
    with op.batch_alter_table("story") as story:
        story.drop_column("at")
