"""Runs that say nothing new are stored as numbers, older ones in blocks. Hourly summaries become blocks."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

from muster_coordinator.store.series import metric_names, packed_summaries, summaries_of
from muster_coordinator.store.summaries import Summary, params_key

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_HOUR_S, _DAY_S = 3_600, 86_400
_AT_A_TIME = 2_000
_BLOCKS_AT_A_TIME = 200

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_SERIES = sa.table(
    "series",
    sa.column("id"),
    *(sa.column(name) for name in ("node", "check", "resolution_s", "since", "until", "count", "metrics")),
    sa.column("times", sa.LargeBinary),
    sa.column("body", sa.LargeBinary),
)
_SUMMARIES = sa.table("summaries", *(sa.column(name) for name in ("id", "node", "check", "started_at", "body")))


def upgrade() -> None:
    """Creates the tables, and packs the summaries of a day into a block. A damaged summary is left out."""
    op.create_table(
        "run_bases",
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("check", sa.Text, primary_key=True),
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("shape", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "quiet_runs",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("check", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("ahead_ms", sa.BigInteger, nullable=False),
        sa.Column("duration_s", sa.Double, nullable=False),
        sa.Column("base", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("key", "seq", sqlite_on_conflict="IGNORE"),
    )
    op.create_index("quiet_runs_by_time", "quiet_runs", ["started_at"])
    op.create_index("quiet_runs_by_node", "quiet_runs", ["node", "started_at"])
    op.create_index("quiet_runs_by_check", "quiet_runs", ["check", "started_at"])
    _create_series()
    _pack_summaries()
    op.drop_table("summaries")


def _create_series() -> None:
    op.create_table(
        "series",
        sa.Column("id", _ID, primary_key=True, autoincrement=True),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("check", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text),
        sa.Column("resolution_s", sa.Integer, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("metrics", sa.Text, nullable=False),
        sa.Column("times", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("series_by_node", "series", ["node", "resolution_s", "until"])
    op.create_index("series_by_time", "series", ["resolution_s", "until"])
    op.create_index("series_by_key", "series", ["key"])


def _pack_summaries() -> None:
    blocks: list[dict[str, Any]] = []
    for _, same_day in groupby(_stored_summaries(), lambda each: (each.node, int(each.started_at // _DAY_S))):
        alike: dict[tuple[str, str], list[Summary]] = {}
        for summary in same_day:
            alike.setdefault((summary.check, params_key(summary.params)), []).append(summary)
        blocks += [_block(summaries) for summaries in alike.values()]
        if len(blocks) >= _BLOCKS_AT_A_TIME:
            op.get_bind().execute(_SERIES.insert(), blocks)
            blocks.clear()
    if blocks:
        op.get_bind().execute(_SERIES.insert(), blocks)


def _stored_summaries() -> Iterator[Summary]:
    """The summaries by node and time, some thousand at a time, because a large fleet has millions."""
    columns = _SUMMARIES.c
    key = (columns.node, columns.started_at, columns.id)
    query = sa.select(*key, columns.body).order_by(*key).limit(_AT_A_TIME)
    last: tuple[Any, ...] = ("", -1.0, "")
    while rows := op.get_bind().execute(query.where(sa.tuple_(*key) > sa.tuple_(*map(sa.literal, last)))).all():
        for *_, body in rows:
            try:
                yield Summary.model_validate_json(body)
            except ValueError:
                continue
        last = tuple(rows[-1][:3])


def _block(summaries: list[Summary]) -> dict[str, Any]:
    times, body = packed_summaries(summaries)
    return {
        "node": summaries[0].node,
        "check": summaries[0].check,
        "resolution_s": _HOUR_S,
        "since": summaries[0].started_at,
        "until": summaries[-1].started_at,
        "count": len(summaries),
        "metrics": metric_names({metric for each in summaries for metric in each.metrics}),
        "times": times,
        "body": body,
    }


def downgrade() -> None:
    """Unpacks the hourly blocks. What quiet runs measured in the last weeks is lost; whole runs stay."""
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
    rows = op.get_bind().execute(sa.select(_SERIES).where(_SERIES.c.resolution_s == _HOUR_S))
    for row in rows.mappings().all():
        summaries = summaries_of(row["node"], row["check"], row["times"], row["body"], row["count"])
        unpacked = [
            {
                "id": f"{row['id']}.{number}",
                "node": row["node"],
                "check": row["check"],
                "started_at": summary.started_at,
                "body": json.dumps(summary.model_dump(mode="json")),
            }
            for number, summary in enumerate(summaries)
        ]
        op.get_bind().execute(_SUMMARIES.insert(), unpacked)
    for table in ("series", "quiet_runs", "run_bases"):
        op.drop_table(table)
