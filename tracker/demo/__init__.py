"""Recorded runs that ship with the package, so that tables and pages have something real to show.

Each .json file beside this module is one run document of schema 1 (`demo` true), plain or gzipped;
`commits.jsonl` holds the commits between them, a line each, which give the series their order.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from tracker.errors import NotFoundError, RecordError
from tracker.model import Commit, Run
from tracker.record import MAX_BYTES, parse_run
from tracker.store import Store

STORE_NAME = "demo.db"
COMMITS = "commits.jsonl"
_SUFFIXES = (".json", ".json.gz")


def recorded_runs(folder: Traversable | None = None) -> tuple[Run, ...]:
    """Return the shipped runs, oldest first.

    Raises NotFoundError when none are shipped, RecordError for a file that is no demo run.
    """
    base = files(__name__) if folder is None else folder
    runs = tuple(map(_load, _record_files(base)))
    if not runs:
        raise NotFoundError(
            "no recorded runs are shipped with this version of bandwatch; measure your own: "
            "pytest --benchmark"
        )
    return tuple(sorted(runs, key=lambda run: run.started_at))


def recorded_commits(folder: Traversable | None = None) -> tuple[Commit, ...]:
    """Return the shipped commits, children before parents; none where none are shipped."""
    file = (files(__name__) if folder is None else folder) / COMMITS
    if not file.is_file():
        return ()
    read = map(json.loads, file.read_text().splitlines())
    return tuple(Commit(**{**line, "parents": tuple(line["parents"])}) for line in read)


def load_demo(store: Store, runs: Iterable[Run]) -> None:
    """Record shipped runs and the commits between them in `store`. Raises StoreError."""
    for run in runs:
        store.record(run)
    store.learn_commits(recorded_commits())


def planted(runs: tuple[Run, ...]) -> tuple[str, ...]:
    """Return the notes of the runs that say that a slow-down was planted on purpose."""
    notes = (note for run in runs for note in run.notes)
    return tuple(dict.fromkeys(note for note in notes if "planted" in note.lower()))


def _record_files(base: Traversable) -> Iterator[Traversable]:
    for entry in sorted(base.iterdir(), key=lambda item: item.name):
        if entry.is_file() and entry.name.endswith(_SUFFIXES):
            yield entry


def _load(file: Traversable) -> Run:
    run = parse_run(_content(file), file.name)
    if not run.demo:
        raise RecordError(
            f"cannot use {file.name} as a demo: its run does not say demo; "
            "expected a recorded run that does, so that no real history is mixed with it"
        )
    return run


def _content(file: Traversable) -> bytes:
    if not file.name.endswith(".gz"):
        return file.read_bytes()
    try:
        with file.open("rb") as packed, gzip.open(packed) as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"cannot read {file.name}: not a whole gzip file ({error})") from error
    if len(content) > MAX_BYTES:
        raise RecordError(f"cannot read {file.name}: it unpacks to more than {MAX_BYTES} bytes")
    return content
