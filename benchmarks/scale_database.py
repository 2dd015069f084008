"""The coordinator's database, read beside it: its size, and how many rows it has of a kind. SQLite or PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from muster.config import Settings, StoreSettings
from muster.errors import Unavailable
from muster_coordinator.store.opening import open_to_read


class ScaleDatabase:
    """The database of the coordinator with this `data_dir`."""

    def __init__(self, engine: AsyncEngine, data_dir: Path) -> None:
        self._engine = engine
        self._data_dir = data_dir

    async def size_bytes(self) -> int:
        """The bytes of SQLite's files, or of all tables and indexes of PostgreSQL."""
        if self._engine.dialect.name == "postgresql":
            return int(await self.scalar("SELECT pg_database_size(current_database())"))
        return sum(file.stat().st_size for file in self._data_dir.glob("muster.db*"))

    async def scalar(self, query: str, **values: object) -> Any:
        """The only value of the only row that a query finds."""
        async with self._engine.connect() as connection:
            return await connection.scalar(text(query), values)


@asynccontextmanager
async def opened(data_dir: Path, url: str | None) -> AsyncIterator[ScaleDatabase]:
    """The database of a coordinator that has started, for reading."""
    engine = open_to_read(Settings(data_dir=data_dir, store=StoreSettings(url=url)))
    if engine is None:
        raise Unavailable(f"no database in {data_dir}: the coordinator must have started before")
    try:
        yield ScaleDatabase(engine, data_dir)
    finally:
        await engine.dispose()
