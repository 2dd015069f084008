"""The tables of the store. Search keys have a column; `body` is the whole record as JSON."""

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text, UniqueConstraint

METADATA = MetaData()

META = Table("meta", METADATA, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

NODES = Table("nodes", METADATA, Column("name", Text, primary_key=True), Column("body", Text, nullable=False))

STREAMS = Table(
    "streams",
    METADATA,
    Column("node", Text, primary_key=True),
    Column("stream", Text, primary_key=True),
    Column("through", BigInteger, nullable=False),
)

RUNS = Table(
    "runs",
    METADATA,
    Column("id", Text, primary_key=True, sqlite_on_conflict_primary_key="IGNORE"),
    Column("node", Text, nullable=False),
    Column("check", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("duration_s", Double, nullable=False),
    Column("stream", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("group", Text),
    Column("cause", Text),
    Column("body", Text, nullable=False),
    UniqueConstraint("node", "stream", "seq", name="runs_once", sqlite_on_conflict="IGNORE"),
    Index("runs_by_time", "started_at", "id"),
    Index("runs_by_node", "node", "started_at", "id"),
    Index("runs_by_check", "check", "started_at", "id"),
    Index("runs_by_verdict", "verdict", "started_at", "id"),
)

SWEEPS = Table(
    "sweeps",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("sweeps_by_time", "created_at", "id"),
)

GROUPS = Table(
    "groups",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("sweep", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("groups_by_sweep", "sweep", "round", "started_at"),
)

REFERENCES = Table(
    "operator_references",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
)

BASELINES = Table("baselines", METADATA, Column("id", Text, primary_key=True), Column("body", Text, nullable=False))

LEVELS = Table(
    "device_levels",
    METADATA,
    Column("baseline", Text, primary_key=True),
    Column("node", Text, primary_key=True),
    Column("body", Text, nullable=False),
)

SUMMARIES = Table(
    "summaries",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("check", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("summaries_by_node", "node", "started_at", "id"),
    Index("summaries_by_time", "started_at"),
)

STORY = Table(
    "story",
    METADATA,
    # SQLite increments by itself only in a column of exactly this type.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("node", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("story_by_node", "node", "number"),
    Index("story_by_time", "at"),
)

CASES = Table(
    "cases",
    METADATA,
    Column("node", Text, primary_key=True),
    Column("transition", Text),
    Column("body", Text, nullable=False),
)

ACTIONS = Table(
    "actions",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("actions_by_time", "at", "id"),
    Index("actions_by_node", "node", "at", "id"),
)

REQUESTS = Table(
    "requests",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("node", Text),
    Column("at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("requests_by_time", "at", "id"),
    Index("requests_by_node", "node", "at", "id"),
)
