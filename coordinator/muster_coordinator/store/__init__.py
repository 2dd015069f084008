"""The database: what the coordinator remembers. Whatever it has said to anybody was written here first.

Knows SQLAlchemy, Alembic and the pure rooms' records. Must not know the network or what people read.
Start with `store.py`; `retention.py` removes what is old, `migrations/` brings an older database up to date.
"""
