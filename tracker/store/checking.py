"""Whether a store holds what it should: structure, counts, and every run's content."""

import time
from collections.abc import Iterator
from itertools import chain
from math import inf

from sqlalchemy import func, select, text
from sqlalchemy.engine import Connection

from tracker.errors import StoreAwayError, StoreError, TrackerError
from tracker.record.dump import digest
from tracker.store.reader import read_run
from tracker.store.restated import check_series, differing
from tracker.store.schema import ResultRow, RunRow, SampleRow, SeriesRow
from tracker.store.store import Store


def check_store(store: Store, *, content: bool = True) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong; nothing for a sound store.

    With `content`, every run is read back and its digest compared with that of its record, and so
    are the columns by which queries find it; of runs whose measurements were pruned only these.
    """
    with store.reading("check the store") as connection:
        if connection.dialect.name == "sqlite":
            yield from _check_file(connection)
        yield from _check_counts(connection)
    if content:
        yield from _check_content(store)


def _check_file(connection: Connection) -> Iterator[str]:
    for row in connection.execute(text("PRAGMA integrity_check(20)")):
        if row[0] != "ok":
            yield f"the file is damaged: {row[0]}"
    for row in connection.execute(text("PRAGMA foreign_key_check")):
        yield f"row {row[1]} of {row[0]} refers to a row of {row[2]} that does not exist"


def _check_counts(connection: Connection) -> Iterator[str]:
    counted = (
        select(
            ResultRow.run_id,
            func.count().label("results"),
            func.count(SampleRow.result_id).label("samples"),
        )
        .outerjoin(SampleRow, SampleRow.result_id == ResultRow.id)
        .group_by(ResultRow.run_id)
    )
    found = {row.run_id: (row.results, row.samples) for row in connection.execute(counted)}
    runs = connection.execute(select(RunRow.id, RunRow.run_id, RunRow.results)).all()
    for run in runs:
        results, samples = found.pop(run.id, (0, 0))
        if (results, samples) != (run.results, run.results):
            yield (
                f"run {run.run_id} has {results} results and {samples} samples; "
                f"expected {run.results} of each"
            )
    for number in found:
        yield f"results of a run that does not exist: row {number} of runs"
    yield from _check_series(connection, sum(run.results for run in runs))


def _check_series(connection: Connection, expected: int) -> Iterator[str]:
    counted = connection.execute(select(func.coalesce(func.sum(SeriesRow.results), 0))).scalar_one()
    if counted != expected:
        yield f"the series count {counted} results; expected {expected}"


def first_damage(address: str, within_s: float) -> str | None:
    """Return the first thing that is wrong with a store, None where nothing was found in time.

    For an error that nobody foresaw: rows with holes, or text that no store wrote.
    """
    try:
        with Store.open(address, read_only=True) as store:
            until = time.monotonic() + within_s
            return next(
                chain(check_store(store, content=False), _check_content(store, until)), None
            )
    except StoreError as error:
        # One that is not there, away or of another schema is not damaged.
        return str(error) if "damaged" in str(error) else None


def _check_content(store: Store, until: float = inf) -> Iterator[str]:
    with store.reading("list runs") as connection:
        runs = connection.execute(
            select(RunRow.id, RunRow.run_id, RunRow.digest, RunRow.thinned_at).order_by(RunRow.id)
        ).all()
        yield from check_series(connection)
    for row in runs:
        if time.monotonic() > until:
            return
        try:
            # One transaction a run: a long one would keep a server from cleaning up.
            with store.reading(f"read run {row.run_id}") as connection:
                run = read_run(connection, row.id)
                columns = ", ".join(differing(connection, row.id, run))
        except StoreAwayError:
            raise
        except (TrackerError, ValueError, KeyError, TypeError) as error:
            yield f"run {row.run_id} cannot be read: {error}"
            continue
        if row.thinned_at is None and digest(run) != row.digest:
            yield f"run {row.run_id} is not what was recorded: its content has another digest"
        elif columns:
            yield f"run {row.run_id} is found by other values than it has: {columns}"
