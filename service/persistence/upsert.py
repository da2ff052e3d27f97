"""Insert a row, or change the one that is there, which SQLAlchemy spells differently for each database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_absent(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert the row where none has its key; tells whether it did."""
    return connection.execute(_absent(connection.dialect.name, table), values).first() is not None


def insert_or_update(
    connection: Connection,
    table: Table,
    values: Mapping[str, Any],
    key: Sequence[str],
    where: ColumnElement[bool] | None = None,
) -> bool:
    """Insert the row, or put its values into the one with its key where `where` holds of that.

    Tells whether it did either.
    """
    changed = {name: value for name, value in values.items() if name not in key}
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)
    statement = insert.values(**values)
    upsert = statement.on_conflict_do_update(index_elements=key, set_=changed, where=where)
    # By the row that comes back: the count of an INSERT's rows is not given by every driver.
    return connection.execute(upsert.returning(*table.primary_key)).first() is not None


@cache
def _absent(dialect: str, table: Table) -> Any:
    # Built once: it is asked for each crash of a batch, and takes longer to build than to do.
    return (
        (sqlite if dialect == "sqlite" else postgresql)
        .insert(table)
        .on_conflict_do_nothing()
        .returning(*table.primary_key)
    )
