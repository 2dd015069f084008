"""Decisions about a node as three records: evidence, decision, status at the actors. The log of decisions goes.

Mass events, and causes that a person lifted, are stored once instead of beside every node that has them.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_AT_A_TIME = 5_000

_FLEET_STATE = "quarantine"

_EVIDENCE = {
    "charges": "findings",
    "sightings": "seen",
    "fit": "is_fit",
    "lost_at": "lost_at",
    "gone": "has_left",
    "place": "domain",
    "own_checks": "own_checks",
    "patience_s": "silent_after_s",
}
_DECISION = {
    "state": "state",
    "since": "since",
    "dry_run": "dry_run",
    "demand": "requirement",
    "prospect": "upcoming",
    "accused_at": "required_since",
    "cause_since": "cause_since",
    "hold": "hold",
    "absolved_at": "ignored_before",
    "asked": "second_opinions",
    "taken_out": "cordoned_at",
    "accusers": "retest_checks",
    "may_return": "retest_because",
    "trial": "probation",
    "kept_out": "kept_out_as_new",
}
_ACTORS = {
    "transition": "transition",
    "views": "observed",
    "listed": "was_listed",
    "closed_as": "shut_out_as",
    "announced": "shows_held",
}

_WAITS = {
    "at most": "RATE",
    "the budget is": "BUDGET",
    "the budget of": "DOMAIN_BUDGET",
    "it would be the last": "LAST_NODE",
    "too many nodes": "MASS_EVENT",
}
"""How the earlier text began that said why a node waits, and the kind of waiting that it means; any other text is
ORDER.
"""

Body = dict[str, Any]


def upgrade() -> None:
    """Nests what was flat, collects the mass events, and drops the log."""
    _store_fleet_state(_fleet_state(body for _, body in _bodies()))
    _rewrite(_nested)
    op.drop_index("quarantine_log_by_kind", "quarantine_log")
    op.drop_index("quarantine_log_by_epoch", "quarantine_log")
    op.drop_table("quarantine_log")


def downgrade() -> None:
    """Flattens the records again. The texts about waiting nodes come with the next decision; the log begins empty."""
    meta = sa.table("meta", sa.column("key"), sa.column("value"))
    stored = op.get_bind().execute(sa.select(meta.c.value).where(meta.c.key == _FLEET_STATE)).scalar()
    fleet = json.loads(stored) if stored else {}
    frozen = {event["cause"] for event in fleet.get("mass_events", ())}
    lifted = set(fleet.get("lifted", ()))
    _rewrite(lambda body: _flat(body, frozen, lifted))
    op.get_bind().execute(meta.delete().where(meta.c.key == _FLEET_STATE))
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


def _nested(old: Body) -> Body:
    """A record as it is stored from now on."""
    new: Body = {
        "node": old["node"],
        "evidence": _picked(old, _EVIDENCE),
        "decision": _picked(old, _DECISION),
        "actors": _picked(old, _ACTORS),
    }
    if text := old.get("held_because"):
        known = (kind for beginning, kind in _WAITS.items() if text.startswith(beginning))
        new["decision"]["waits_for"] = next(known, "ORDER")
    return new


def _flat(new: Body, frozen: set[str], lifted: set[str]) -> Body:
    """A case as it was stored before."""
    old: Body = {"node": new["node"]}
    for part, names in (("evidence", _EVIDENCE), ("decision", _DECISION), ("actors", _ACTORS)):
        old |= {was: new[part][name] for was, name in names.items() if name in new.get(part, {})}
    cause = (old.get("demand") or {}).get("cause")
    old["frozen_by"] = cause if cause in frozen else None
    old["let_pass"] = cause if cause in lifted else None
    if new["decision"].get("waits_for"):
        old["held_because"] = "others may be worse"
    return old


def _picked(old: Body, names: dict[str, str]) -> Body:
    return {name: old[was] for was, name in names.items() if was in old}


def _fleet_state(bodies: Iterator[Body]) -> Body:
    """The mass events and lifted causes that were stored beside the nodes."""
    nodes: dict[str, list[str]] = {}
    frozen, lifted = set(), set()
    for body in bodies:
        demand = body.get("demand")
        if demand and body.get("cause_since"):
            nodes.setdefault(demand["cause"], []).append(body["cause_since"])
        frozen |= {cause for cause in (body.get("frozen_by"),) if cause}
        lifted |= {cause for cause in (body.get("let_pass"),) if cause}
    events = [
        {"cause": cause, "nodes": len(nodes[cause]), "since": min(nodes[cause])}
        for cause in sorted(frozen & nodes.keys())
    ]
    return {"mass_events": events, "lifted": sorted(lifted)}


def _store_fleet_state(state: Body) -> None:
    meta = sa.table("meta", sa.column("key"), sa.column("value"))
    op.get_bind().execute(meta.insert(), [{"key": _FLEET_STATE, "value": json.dumps(state)}])


def _bodies() -> Iterator[tuple[str, Body]]:
    """Each node with its body, some thousand at a time. A body that is not JSON stays; the start refuses it."""
    cases = sa.table("cases", sa.column("node"), sa.column("body"))
    query = sa.select(cases.c.node, cases.c.body).order_by(cases.c.node).limit(_AT_A_TIME)
    last = ""
    while rows := op.get_bind().execute(query.where(cases.c.node > last)).all():
        yield from ((node, body) for node, text in rows if (body := _parsed(text)) is not None)
        last = rows[-1].node


def _parsed(text: str) -> Body | None:
    try:
        body = json.loads(text)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _rewrite(change: Callable[[Body], Body]) -> None:
    cases = sa.table("cases", sa.column("node"), sa.column("body"))
    written = cases.update().where(cases.c.node == sa.bindparam("of")).values(body=sa.bindparam("new"))
    batch: list[Body] = []
    for node, body in _bodies():
        batch.append({"of": node, "new": json.dumps(change(body))})
        if len(batch) == _AT_A_TIME:
            op.get_bind().execute(written, batch)
            batch.clear()
    if batch:
        op.get_bind().execute(written, batch)
