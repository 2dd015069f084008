"""The tables of the store. Search keys have a column; `body` is the whole record as JSON."""

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()

META = Table("meta", METADATA, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

NODES = Table(
    "nodes",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Column("announced", Text),
)
"""`announced` is the id of the node's announcement."""

ANNOUNCEMENTS = Table(
    "announcements", METADATA, Column("id", Text, primary_key=True), Column("body", Text, nullable=False)
)
"""The checks and plugins that nodes announce: 20 KiB, which most nodes of a fleet share. The id is a digest of them."""

EVIDENCE = Table("evidence", METADATA, Column("node", Text, primary_key=True), Column("body", Text, nullable=False))

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

FINGERPRINTS = Table(
    "fingerprints", METADATA, Column("id", Text, primary_key=True), Column("body", Text, nullable=False)
)

RESULTS = Table(
    "device_results",
    METADATA,
    Column("fingerprint", Text, primary_key=True),
    Column("node", Text, primary_key=True),
    Column("body", Text, nullable=False),
)

RUN_BASES = Table(
    "run_bases",
    METADATA,
    Column("node", Text, primary_key=True),
    Column("check", Text, primary_key=True),
    Column("run", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("stream", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("shape", LargeBinary, nullable=False),
)
"""The whole runs that new runs may be like (see `evidence.quiet_runs`), in the order of `number`."""

QUIET_RUNS = Table(
    "quiet_runs",
    METADATA,
    Column("key", Text, nullable=False),
    Column("seq", BigInteger, autoincrement=False, nullable=False),
    Column("node", Text, nullable=False),
    Column("check", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ahead_ms", BigInteger, nullable=False),
    Column("duration_s", Double, nullable=False),
    Column("base", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("key", "seq", sqlite_on_conflict="IGNORE"),
    Index("quiet_runs_by_time", "started_at"),
    Index("quiet_runs_by_node", "node", "started_at"),
    Index("quiet_runs_by_check", "check", "started_at"),
)
"""The quiet runs of the last hour or two, each with its numbers. Their ids are `key`.`seq`."""

SERIES = Table(
    "series",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("node", Text, nullable=False),
    Column("check", Text, nullable=False),
    Column("verdict", Text),
    Column("resolution_s", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("count", Integer, nullable=False),
    Column("key", Text),
    Column("metrics", Text, nullable=False),
    Column("times", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("series_by_node", "node", "resolution_s", "until"),
    Index("series_by_time", "resolution_s", "until"),
    Index("series_by_key", "key"),
)
"""Blocks of older runs (see `store.series`), each of one check of one node: every run if `resolution_s` is 0, otherwise
summaries of `resolution_s` seconds each. `since` and `until` are the first and the last start, `count` is the number of
starts. `verdict` and `key` are set where every run is kept.
"""

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

AUDIT = Table(
    "audit",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("subject", Text),
    Column("body", Text, nullable=False),
    Index("audit_by_subject", "subject", "number"),
)
"""The database itself refuses to change or delete its rows."""

ACCEPTANCE_REPORTS = Table(
    "acceptance_reports",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("received_at", Double, nullable=False),
    Column("suite", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("acceptance_reports_by_time", "received_at", "id"),
)

ACCEPTANCE_NODES = Table(
    "acceptance_nodes",
    METADATA,
    Column("node", Text, primary_key=True),
    Column("report", Text, primary_key=True),
    Index("acceptance_nodes_by_report", "report"),
)
"""The nodes of each report."""
