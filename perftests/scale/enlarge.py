"""A store on a server made many times as large by the server itself, for what only reads.

Recording ten million results would take hours on two processors. Here the server copies the rows of
a store that was recorded: runs, results, samples and commits of each copy get ids, names and times
of their own, so that every table and index has the rows, widths and order that it would have. Only
the digests of the copied runs are those of their originals: `bandwatch db check` would say so.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.tests.cluster import Cluster

_SIZES = """SELECT (SELECT max(id) FROM commits), (SELECT max(id) FROM runs),
       (SELECT max(id) FROM results), (SELECT max(started) - min(started) + 1800 FROM runs)"""
_LATER = "to_char(to_timestamp({time}) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"+00:00\"')"
# One copy: {n} is its number from 1, the other names are the sizes of the original.
_COPY = (
    """INSERT INTO commits
       SELECT id + {n} * {commits}, {sha}, known, author,
              {author_time}, {commit_time}, committed + {n} * {period}, subject
       FROM commits WHERE id <= {commits}""",
    """INSERT INTO commit_parents
       SELECT commit_id + {n} * {commits}, position, parent_id + {n} * {commits}
       FROM commit_parents WHERE commit_id <= {commits}""",
    """INSERT INTO runs
       SELECT r.id + {n} * {runs}, run_id || '-' || {n}, digest, gpu_model_id, device_id,
              environment_id, commit_id + {n} * {commits}, branch, dirty, complete, demo,
              {started_at}, started + {n} * {period}, finished_at, recorded_at,
              revision + {n} * {runs}, results, statuses, thinned_at,
              replace(detail, '"sha":"' || sha, '"sha":"' || {sha})
       FROM runs r JOIN commits c ON c.id = r.commit_id WHERE r.id <= {runs}""",
    """INSERT INTO results
       SELECT id + {n} * {results}, run_id + {n} * {runs}, case_id, facts_id, status, count,
              median_s, mean_s, min_s, max_s, q1_s, q3_s, stddev_s, bytes_moved,
              copy_bytes_per_s, median_cycles, shared
       FROM results WHERE id <= {results}""",
    """INSERT INTO samples
       SELECT result_id + {n} * {results}, measurements, detail
       FROM samples WHERE result_id <= {results}""",
)
_FINISH = (
    """UPDATE series SET results = results * {times},
              last_started = last_started + {last} * {period}""",
    "UPDATE meta SET revision = (SELECT max(revision) FROM runs)",
)


def enlarge(cluster: Cluster, database: str, times: int) -> None:
    """Make a database's store `times` as large; it must not have been enlarged before."""
    import psycopg

    with psycopg.connect(cluster.dsn(database), autocommit=True) as connection:
        found = connection.execute(_SIZES).fetchone()
        if found is None or found[1] is None:
            raise ValueError(f"cannot enlarge {database}: it holds no run")
        names = dict(zip(("commits", "runs", "results", "period"), map(repr, found), strict=True))
        names |= {"times": str(times), "last": str(times - 1)}
        # The originals keep what the constraints ask for, and so do the copies.
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET synchronous_commit = off")
        for n in range(1, times):
            began = time.monotonic()
            for statement in _COPY:
                connection.execute(_filled(statement, n, names).encode())
            seconds = time.monotonic() - began
            sys.stderr.write(f"copy {n} of {times - 1}: {seconds:.0f} s\n")
        for statement in _FINISH:
            connection.execute(statement.format(**names).encode())
    cluster.execute("VACUUM ANALYZE", "CHECKPOINT", database=database)


def _filled(statement: str, n: int, names: dict[str, str]) -> str:
    shifted = {
        "sha": f"lpad(to_hex({n}), 4, '0') || substr(sha, 5)",
        "author_time": _LATER.format(time=f"committed + {n} * {names['period']}"),
        "commit_time": _LATER.format(time=f"committed + {n} * {names['period']}"),
        "started_at": _LATER.format(time=f"started + {n} * {names['period']}"),
    }
    return statement.format(n=n, **names, **shifted)
