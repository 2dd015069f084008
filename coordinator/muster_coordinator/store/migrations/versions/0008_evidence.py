"""The evidence about nodes, and what their devices measured last, are stored: a restart need not read runs.

The evidence itself is not made here: the coordinator rebuilds it from the last runs at its first start, and stores it.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_AT_A_TIME = 500

_ANNOUNCED = ("checks", "plugins")

_NODES = sa.table("nodes", *map(sa.column, ("name", "body", "announced")))
_LEVELS = sa.table("device_levels", *map(sa.column, ("baseline", "node", "body")))


def upgrade() -> None:
    """Creates the tables, and moves checks and plugins of nodes into a column of their own."""
    op.create_table(
        "evidence", sa.Column("node", sa.Text, primary_key=True), sa.Column("body", sa.Text, nullable=False)
    )
    op.create_table(
        "fingerprints", sa.Column("id", sa.Text, primary_key=True), sa.Column("body", sa.Text, nullable=False)
    )
    op.create_table(
        "device_results",
        sa.Column("fingerprint", sa.Text, primary_key=True),
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.add_column("nodes", sa.Column("announced", sa.Text))
    _change(_NODES, ("name",), _split)
    _change(_LEVELS, ("baseline", "node"), _flat)


def downgrade() -> None:
    """Restores the former rows. Devices without a level of their own are left out."""
    _change(_NODES, ("name",), _joined)
    _change(_LEVELS, ("baseline", "node"), _nested)
    with op.batch_alter_table("nodes") as nodes:
        nodes.drop_column("announced")
    for table in ("device_results", "fingerprints", "evidence"):
        op.drop_table(table)


def _change(table: Any, key: tuple[str, ...], changed: Callable[[Any], dict[str, Any] | None]) -> None:
    """Changes every row, some hundred at a time. A damaged row stays as it is."""
    columns = [table.c[name] for name in key]
    matches = [column == sa.bindparam(f"key_{name}") for name, column in zip(key, columns, strict=True)]
    for rows in _rows(table, columns):
        updates = []
        for row in rows:
            try:
                values = changed(row)
            except (ValueError, TypeError, LookupError, AttributeError):
                continue
            if values is not None:
                updates.append({**values, **{f"key_{name}": row[name] for name in key}})
        if updates:
            values = {name: sa.bindparam(name) for name in updates[0] if not name.startswith("key_")}
            op.get_bind().execute(sa.update(table).where(*matches).values(values), updates)


def _rows(table: Any, key: list[Any]) -> Iterator[list[Any]]:
    query = sa.select(table).order_by(*key).limit(_AT_A_TIME)
    last = [""] * len(key)
    while (
        rows := op.get_bind().execute(query.where(sa.tuple_(*key) > sa.tuple_(*map(sa.literal, last)))).mappings().all()
    ):
        yield [*rows]
        last = [rows[-1][column.name] for column in key]


def _split(row: Any) -> dict[str, Any]:
    body = json.loads(row["body"])
    announced = {name: body.pop(name, []) for name in _ANNOUNCED}
    return {"body": json.dumps(body), "announced": json.dumps(announced)}


def _joined(row: Any) -> dict[str, Any] | None:
    if row["announced"] is None:
        return None
    return {"body": json.dumps(json.loads(row["body"]) | json.loads(row["announced"]))}


def _flat(row: Any) -> dict[str, Any]:
    body = json.loads(row["body"])
    levels = {device: [level["uuid"], level["centre"], level["spread"], []] for device, level in body["levels"].items()}
    return {"body": json.dumps(body | {"levels": levels})}


def _nested(row: Any) -> dict[str, Any]:
    body = json.loads(row["body"])
    levels = {
        device: {"uuid": uuid, "centre": centre, "spread": spread}
        for device, (uuid, centre, spread, _) in body["levels"].items()
        if centre is not None
    }
    return {"body": json.dumps({"baseline": body["baseline"], "node": body["node"], "levels": levels})}
