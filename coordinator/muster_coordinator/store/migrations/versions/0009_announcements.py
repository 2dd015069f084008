"""What nodes announce has one row for all nodes that announce the same."""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_AT_A_TIME = 500

_NODES = sa.table("nodes", *map(sa.column, ("name", "announced")))
_ANNOUNCEMENTS = sa.table("announcements", *map(sa.column, ("id", "body")))


def upgrade() -> None:
    """Moves each text into a row of its own, and leaves its digest with the nodes."""
    op.create_table(
        "announcements", sa.Column("id", sa.Text, primary_key=True), sa.Column("body", sa.Text, nullable=False)
    )
    known: set[str] = set()
    for rows in _rows():
        texts = {row["name"]: row["announced"] for row in rows}
        ids = {name: blake2b(text.encode(), digest_size=16).hexdigest() for name, text in texts.items()}
        new = {ids[name]: text for name, text in texts.items() if ids[name] not in known}
        known |= new.keys()
        if new:
            op.bulk_insert(_ANNOUNCEMENTS, [{"id": key, "body": text} for key, text in new.items()])
        _write(ids)


def downgrade() -> None:
    """Gives each node its text again."""
    texts = {row.id: row.body for row in op.get_bind().execute(sa.select(_ANNOUNCEMENTS))}
    for rows in _rows():
        _write({row["name"]: texts.get(row["announced"]) for row in rows})
    op.drop_table("announcements")


def _write(announced: Mapping[str, str | None]) -> None:
    statement = sa.update(_NODES).where(_NODES.c.name == sa.bindparam("of")).values(announced=sa.bindparam("value"))
    op.get_bind().execute(statement, [{"of": name, "value": value} for name, value in announced.items()])


def _rows() -> Iterator[list[Any]]:
    """The nodes that have announced something, by name, some hundred at a time."""
    query = sa.select(_NODES).where(_NODES.c.announced.is_not(None)).order_by(_NODES.c.name).limit(_AT_A_TIME)
    last = ""
    while rows := op.get_bind().execute(query.where(_NODES.c.name > last)).mappings().all():
        yield [*rows]
        last = rows[-1]["name"]
