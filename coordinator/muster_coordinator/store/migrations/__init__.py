"""The database's schema, one revision per change; `store` upgrades a database to the newest when it opens it."""

NEWEST = "0011"
"""The newest revision. A database that has it needs no upgrade, so Alembic is not loaded, which takes 0.2 s."""
