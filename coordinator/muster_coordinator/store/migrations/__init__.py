"""The database's schema, one revision per change; `store` brings a database up to the newest when it opens it."""
