"""Files of any known format as runs: each read, checked and named, shards put together."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from sqlalchemy import select

from tracker.errors import NotFoundError, RecordError
from tracker.importers import asv, google_benchmark, nvbench, pytest_benchmark
from tracker.importers.source import Hints, Source
from tracker.importers.view import View
from tracker.model import Run
from tracker.record import merge, parse_json, parse_run, read_limited
from tracker.record.dump import canonical, dump_device, dump_environment
from tracker.record.strict import check_file
from tracker.store import Store
from tracker.store.prepare import check_run
from tracker.store.schema import RunRow

RECORD = "record"
AUTO = "auto"
# In the order in which they are told apart.
_MODULES: dict[str, ModuleType] = {
    module.TOOL: module for module in (pytest_benchmark, asv, nvbench, google_benchmark)
}
FORMATS = (AUTO, RECORD, *_MODULES)
EXPECTED = f"expected {', '.join(FORMATS[1:])} or JSON lines, CSV or Parquet of `bandwatch export`"
# What reading values that are not what they should be ends in; of files, names that cannot be.
_ODDITIES = (
    TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, OSError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Imported:
    """Runs as files gave them, what to tell of them, and which runs have no time of their own."""

    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    undated: frozenset[str]


def read_files(paths: Sequence[Path], form: str = AUTO, hints: Hints | None = None) -> Imported:
    """Return the runs of files, and of the results in folders; nothing is written anywhere.

    Runs with one id are shards and are merged; equal results that came twice are noted. Raises
    RecordError for a file that is too large, damaged, of no known format or in conflict.
    """
    hints = hints or Hints()
    notes: list[str] = []
    files = [
        (tool, _with_results(path, tool, runs, notes))
        for path in _files(paths)
        for tool, runs in [_read(path, form, hints)]
    ]
    if files and not any(runs for _, runs in files):
        raise RecordError(f"cannot import: {'; '.join(notes)[:400]}; expected at least one result")
    found = [run for _, runs in files for run in runs]
    undated = {run.run_id for tool, runs in files for run in runs if tool == nvbench.TOOL}
    whole = _one_run(found, hints.run_id) if hints.run_id else found
    return Imported(tuple(_merged(whole, notes)), tuple(notes), frozenset(undated))


def _with_results(path: Path, tool: str, runs: Sequence[Run], notes: list[str]) -> tuple[Run, ...]:
    """Return the runs that brought a result; our own records may say that nothing was measured."""
    kept = tuple(run for run in runs if run.results or tool == RECORD)
    if not kept:
        notes.append(f"left out {path}: no result in it")
    return kept


def dated_as_held(store: Store, imported: Imported) -> tuple[Run, ...]:
    """Return the runs, those without a time of their own with the time that the store has of them.

    The file of such a run may have been copied since: it is the same run nevertheless.
    """
    with store.reading("read imported runs") as connection:
        query = select(RunRow.run_id, RunRow.started_at).where(RunRow.run_id.in_(imported.undated))
        held = {row.run_id: row.started_at for row in connection.execute(query)}
    return tuple(
        replace(run, started_at=held.get(run.run_id, run.started_at)) for run in imported.runs
    )


def _files(paths: Iterable[Path]) -> Iterable[Path]:
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112 - a name that no file can have is told below
            check_file(path, "results")
            yield path
            continue
        found = [p for p in sorted(path.rglob("*.json")) if p.name not in asv.BESIDE]
        found = [p for p in found if p.is_file()]
        if not found:
            raise NotFoundError(
                f"cannot read {path}: no file in it ends in .json; expected a folder with results"
            )
        yield from found


def _read(path: Path, form: str, hints: Hints) -> tuple[str, tuple[Run, ...]]:
    data = read_limited(path)
    name = str(path)
    view = View.of(_parsed(data, name), name)
    if form == AUTO:
        form = _detect(view)
    if form == RECORD:
        return form, (parse_run(data, name),)
    module = _MODULES[form]
    if not module.fits(view):
        raise RecordError(f"cannot read {name}: it is no {form} file; {EXPECTED}")
    source = Source(path, view, hashlib.sha256(data).hexdigest(), hints)
    try:
        runs: tuple[Run, ...] = module.read(source)
    except _ODDITIES as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise RecordError(
            f"cannot read {name}: its values are not what {form} writes ({told})"
        ) from error
    for run in runs:
        # The store would refuse it too, but could not say which file it is of.
        check_run(run, name)
    return form, runs


def _parsed(data: bytes, name: str) -> object:
    # Only in asv's files NaN has a meaning.
    if b'"commit_hash"' in data:
        value = parse_json(data, name, nan=True)
        if isinstance(value, dict) and asv.fits(View.of(value, name)):
            return value
    return parse_json(data, name)


def _detect(view: View) -> str:
    if view.data.get("kind") == "run" and "schema" in view.data:
        return RECORD
    for form, module in _MODULES.items():
        if module.fits(view):
            return form
    raise RecordError(f"cannot read {view.name}: its format is not known; {EXPECTED}")


def _one_run(runs: Sequence[Run], run_id: str) -> list[Run]:
    """Return the runs as shards of one run; those on further devices are `run_id.2` and so on."""
    places: dict[bytes, str] = {}
    for run in runs:
        places.setdefault(_place(run), f"{run_id}.{len(places) + 1}" if places else run_id)
    return [replace(run, run_id=places[_place(run)]) for run in runs]


def _place(run: Run) -> bytes:
    return canonical([dump_environment(run.environment), dump_device(run.device)])


def _merged(runs: Sequence[Run], notes: list[str]) -> Iterable[Run]:
    shards: dict[str, list[Run]] = {}
    for run in runs:
        shards.setdefault(run.run_id, []).append(run)
    for run_id, parts in shards.items():
        merged = merge(parts)
        if len(parts) > 1:
            notes.append(f"merged {len(parts)} shards of run {run_id}")
        notes += [f"{label} stands in two shards, equal" for label in merged.duplicates]
        yield parts[0] if len(parts) == 1 else merged.run
