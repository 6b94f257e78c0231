"""Whether the store can be reached, its schema version, and what it holds."""

from sqlalchemy import func, select

from tracker.config import StoreChoice
from tracker.doctor.finding import Finding, Level
from tracker.errors import StoreError
from tracker.store import migrate
from tracker.store.schema import CaseRow, CommitRow, GpuModelRow, ResultRow, RunRow
from tracker.store.store import Store

AREA = "store"
_COUNTED = {
    "runs": RunRow,
    "results": ResultRow,
    "cases": CaseRow,
    "commits": CommitRow,
    "GPU models": GpuModelRow,
}


def check_store(choice: StoreChoice) -> tuple[Finding, ...]:
    """Return what is known of the store, which is only read, never made."""
    where = Finding(AREA, "address", Level.OK, f"{choice.shown} (named by {choice.source})")
    if choice.file is not None and not choice.file.exists():
        missing = "no store yet; the first run makes it"
        return where, Finding(
            AREA, "content", Level.INFO, missing, "pytest --benchmark, or bandwatch demo"
        )
    try:
        with Store.open(choice.url, read_only=True) as store:
            return where, *_content(store)
    except StoreError as error:
        return where, Finding(AREA, "content", Level.WARN, str(error))


def _content(store: Store) -> tuple[Finding, ...]:
    with store.reading("count its runs") as connection:
        version = migrate.version_of(connection)
        counts = {
            name: connection.scalar(select(func.count()).select_from(table))
            for name, table in _COUNTED.items()
        }
    held = ", ".join(
        f"{count} {name.removesuffix('s') if count == 1 else name}"
        for name, count in counts.items()
    )
    return (
        Finding(AREA, "schema", Level.OK, f"version {version}, revision {store.revision()}"),
        Finding(AREA, "content", Level.OK, held),
    )
