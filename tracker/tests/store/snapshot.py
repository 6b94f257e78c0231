"""Stores of every released schema as SQL, for the tests of the way up.

    python -m tracker.tests.store.snapshot

writes the dumps of the newest schema, once, when it is released; those of older ones never change.
"""

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from tracker.store import Store, migrate
from tracker.tests.cluster import Cluster

FOLDER = Path(__file__).with_name("released")
ENGINES = ("sqlite", "postgresql")


def dump_of(version: str, engine: str) -> Path:
    """Return where the dump of a schema is."""
    return FOLDER / f"{version}-{engine}.sql"


def load_file(version: str, path: Path) -> None:
    """Make the SQLite file of a dump, as that version left it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(dump_of(version, "sqlite").read_bytes().decode())


def load_database(version: str, cluster: Cluster, name: str) -> str:
    """Make the database of a dump and return its address."""
    cluster.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    subprocess.run(
        [cluster.bin / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", cluster.dsn(name)],
        stdin=dump_of(version, "postgresql").open(),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return cluster.url(name)


def _fill(address: str) -> None:
    # Late: it imports tests, which a release of an older schema may not have had.
    from tracker.tests.exporters.test_round_trip import fill_unevenly

    with Store.open(address) as store:
        fill_unevenly(store)


def main() -> int:
    """Write the dumps of the newest schema, unless they are there."""
    wanted = [dump_of(migrate.HEAD, engine) for engine in ENGINES]
    if any(path.exists() for path in wanted):
        sys.stderr.write(f"the dumps of {migrate.HEAD} exist and must not change\n")
        return 1
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        _fill(str(path))
        with closing(sqlite3.connect(path)) as connection:
            wanted[0].write_bytes("\n".join([*connection.iterdump(), ""]).encode())
    cluster = Cluster()
    try:
        cluster.execute("CREATE DATABASE released")
        _fill(cluster.url("released"))
        done = subprocess.run(
            [
                *(cluster.bin / "pg_dump", "--inserts", "--no-owner", "--no-privileges"),
                *("-d", cluster.dsn("released")),
            ],
            env={**os.environ, "PGTZ": "UTC"},
            stdout=subprocess.PIPE,
            check=True,
        )
        # What a newer client writes and an older server does not know.
        newer = rb"^(\\(un)?restrict|SET transaction_timeout).*\n"
        wanted[1].write_bytes(re.sub(newer, b"", done.stdout, flags=re.MULTILINE))
    finally:
        cluster.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
