# ruff: noqa: INP001 - Alembic runs this file as a script
"""Migrates through the connection, and inside the transaction, that it is given."""

from alembic import context

from tracker.store.migrate import VERSION_TABLE
from tracker.store.schema import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    # SQLite takes part in the caller's transaction too, since the driver does not commit behind it.
    transactional_ddl=True,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
