"""The database: the coordinator's memory. The coordinator writes here before it sends or answers anything.

Imports SQLAlchemy, Alembic and the records of the pure packages. Must not import the network or texts for people. Start
with `store.py`; `restart.py` reads what the fleet starts from, `retention.py` deletes old data, `migrations/` updates
the schema of an older database.
"""
