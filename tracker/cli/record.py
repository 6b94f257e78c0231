"""`bandwatch record`: put record files into the store."""

import re
from collections.abc import Sequence
from pathlib import Path

import click

from tracker.cli.options import report_command
from tracker.config import Config, prepare_folder
from tracker.errors import RecordError
from tracker.model import Run
from tracker.record import load_run, merge
from tracker.record.strict import check_file
from tracker.report.document import Column, Document, Kind, Row, Table
from tracker.report.formats import Format
from tracker.store import RecordOutcome, Store
from tracker.units import counted

COLUMNS = (
    Column("run", "run", Kind.ID),
    Column("outcome", "outcome", Kind.WORD),
    Column("results", "results", Kind.NUMBER),
    Column("revision", "revision", Kind.NUMBER, drop=1),
)


@click.command("record", short_help="Put record files into the store.")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@report_command
def command(*, files: tuple[Path, ...], form: Format, config: Config) -> Document:
    """Put record files (run documents of schema 1) into the store.

    Each run is one transaction, and recording it twice changes nothing. Files that carry the same
    run id are shards of one run and are merged first. All files are read and checked before
    anything is written. Of the folder of `bandwatch ci` these are head-*.json, repeat-*.json and
    turn-*.json; its report.json and session.json are none.

    Example: bandwatch record run.json
    """
    del form
    notes: list[str] = []
    runs = read_runs(files, notes)
    prepare_folder(config.store)
    with Store.open(config.store.url) as store:
        outcomes = [store.record(run) for run in runs]
    return recorded_document(outcomes, tuple(notes), config)


def read_runs(files: tuple[Path, ...], notes: list[str]) -> tuple[Run, ...]:
    """Return the runs of `files`, shards merged; what was merged goes into `notes`."""
    shards: dict[str, list[Run]] = {}
    for file in files:
        run = _read(file)
        shards.setdefault(run.run_id, []).append(run)
    runs = []
    for run_id, parts in shards.items():
        merged = merge(parts)
        if len(parts) > 1:
            notes.append(f"merged {len(parts)} shards of run {run_id}")
        notes += [f"{label} stands in two shards, equal" for label in merged.duplicates]
        runs.append(parts[0] if len(parts) == 1 else merged.run)
    return tuple(runs)


def _read(file: Path) -> Run:
    """Return the run of a file. Raises RecordError, for others of `bandwatch ci` with its runs."""
    if file.is_dir():
        raise RecordError(f"cannot record {file}: it is a folder; {_runs_in(file)}")
    check_file(file, "a run record")
    try:
        return load_run(file)
    except RecordError as error:
        if file.name not in _NO_RUNS:
            raise
        told = f"it is {_NO_RUNS[file.name]}, no run record; {_runs_in(file.parent)}"
        raise RecordError(f"cannot record {file}: {told}") from error


def _runs_in(folder: Path) -> str:
    """Return which files of a folder can be recorded, or which ones could be in general."""
    runs = sorted(path.name for path in folder.glob("*.json") if _MEASURED.fullmatch(path.name))
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    if runs:
        return f"run records in {folder}: {', '.join(runs[:_NAMED])}{more}"
    return "expected run records, such as head-0.json in the folder of bandwatch ci"


# What `bandwatch ci` leaves in its folder: what it measured itself, and what is no run.
_MEASURED = re.compile(r"(head|repeat|turn-base|turn-head)-\d+\.json")
_NO_RUNS = {"report.json": "a report", "session.json": "the notebook of a session"}
_NAMED = 6


def recorded_document(
    outcomes: Sequence[RecordOutcome],
    notes: tuple[str, ...],
    config: Config,
    *,
    verb: str = "recorded",
    restored: tuple[int, int] = (0, 0),
) -> Document:
    """Return the report on runs that went into the store.

    `restored` counts the runs of exported stores that were added, and those that were there.
    """
    inserted = sum(outcome.inserted for outcome in outcomes)
    same = len(outcomes) - inserted
    inserted, same = inserted + restored[0], same + restored[1]
    rows = tuple(
        Row(
            {
                "run": outcome.run_id,
                "outcome": outcome.outcome.value,
                "results": outcome.results,
                "revision": outcome.revision,
            }
        )
        for outcome in outcomes
    )
    there = f", {same} already there" if same else ""
    found = f"{inserted} of {counted(inserted + same, 'run')}"
    return Document(
        kind="recorded",
        title="",
        summary=f"{verb} {found} in {config.store.shown}{there}",
        facts={"recorded": inserted, "unchanged": same, "store": config.store.shown},
        tables=(Table("runs", COLUMNS, rows),),
        notes=notes,
    )
