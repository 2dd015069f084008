"""The database's schema, one revision per change; `store` upgrades a database to the newest when it opens it."""
