"""`bandwatch list`: the runs or the cases that the store holds."""

import click

from tracker.cli.options import MOST, refuse_idle, report_command
from tracker.config import Config, redact
from tracker.occasion import in_a_word, newest, purpose
from tracker.orphans import reach_of, remark
from tracker.queries import RunInfo, SeriesInfo, count_runs, overview, runs, series_list
from tracker.report.columns import COMMIT, changed_note, commit_values, show_moment
from tracker.report.document import Column, Document, Kind, Row, Table, Value
from tracker.report.formats import Format
from tracker.report.hidden import hidden
from tracker.store import Store
from tracker.units import counted


def _for(value: Value) -> str:
    return in_a_word(value if isinstance(value, str) else None)


# Shown only where there is one. They fold before a commit is cut.
ORPHAN = Column("left_git", None)
PURPOSE = Column("purpose", None)
_RARE = {
    ORPHAN: Column(ORPHAN.key, "left git", Kind.TEXT),
    PURPOSE: Column(PURPOSE.key, "for", Kind.TEXT, _for),
}
RUN_COLUMNS = (
    Column("run", "run", Kind.ID),
    Column("started_at", "started (UTC)", Kind.WORD, show_moment, drop=1),
    *COMMIT,
    Column("branch", "branch", Kind.CODE, drop=4),
    Column("dirty", None),
    Column("gpu_model", "GPU model", Kind.TEXT, drop=2),
    Column("results", "results", Kind.NUMBER, drop=3),
    Column("complete", "complete", Kind.WORD, drop=5),
    Column("subject", "subject", Kind.TEXT, drop=6),
    PURPOSE,
    ORPHAN,
    *(Column(key, None) for key in ("device", "environment", "demo", "command", "notes")),
)
CASE_COLUMNS = (
    Column("case", "case", Kind.CODE),
    Column("fingerprint", "fingerprint", Kind.WORD),
    Column("gpu_model", "GPU model", Kind.TEXT),
    Column("environment", None),
    Column("results", "results", Kind.NUMBER),
    Column("last_started", "last measured (UTC)", Kind.WORD, show_moment, drop=1),
)


@click.command("list", short_help="Show the runs or the cases that the store holds.")
@click.option("--cases", is_flag=True, help="Show cases instead of runs.")
@click.option("--gpu", metavar="MODEL", help="Only this GPU model.")
@click.option("--branch", metavar="NAME", help="Only runs on this branch.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=30,
    show_default=True,
    help="At most so many runs.",
)
@report_command
def command(
    *, cases: bool, gpu: str | None, branch: str | None, limit: int, form: Format, config: Config
) -> Document:
    """Show the newest runs, or with --cases all cases, that the store holds.

    Where some were no run of the suite, a column says for what they were: a study, a case measured
    again (repeat) or in turns with another commit (turns), a commit measured later (backfill), or a
    selection's base. No other command takes such a run for the newest; the last line says which is.

    Example: bandwatch list --limit 5
    """
    del form
    if cases:
        refuse_idle("--cases shows all cases, of every branch", "branch", "limit")
    with Store.open(config.store.url, read_only=True) as store:
        if cases:
            return cases_document(series_list(store, gpu_model=gpu), config)
        total = overview(store).runs
        found = runs(store, gpu_model=gpu, branch=branch, limit=limit)
        matching = count_runs(store, gpu_model=gpu, branch=branch)
        chosen = newest(store, gpu_model=gpu, branch=branch)
    older = hidden_runs(len(found), matching)
    return runs_document(found, total, config, chosen.named if chosen else (), older)


def hidden_runs(shown: int, matching: int) -> str | None:
    """Return the line on the older runs that a limit hides."""
    return hidden(matching - shown, counted(matching - shown, "older run"), f"--limit {matching}")


def runs_document(
    found: tuple[RunInfo, ...],
    total: int,
    config: Config,
    notes: tuple[str, ...] = (),
    older: str | None = None,
) -> Document:
    """Return the table of runs, newest first; `notes` go below it, `older` says what is hidden."""
    # The demo's commits are of another project.
    shas = {run.run_id: None if run.demo else run.sha for run in found}
    reach = reach_of(config.root, filter(None, shas.values()))
    rows = tuple(_run_row(run, reach.left(shas[run.run_id])) for run in found)
    return Document(
        kind="runs",
        title="",
        summary=f"{len(found)} of {counted(total, 'run')} in {config.store.shown}",
        facts={"shown": len(found), "runs": total, "store": config.store.shown},
        tables=(Table("runs", with_rare(RUN_COLUMNS, rows), rows, hidden_note=older),),
        notes=(*changed_note(rows), *notes, *remark(reach, shas.values())),
    )


def with_rare(columns: tuple[Column, ...], rows: tuple[Row, ...]) -> tuple[Column, ...]:
    """Return the columns, shown those of what is rare (left git, no run of the suite) if it is."""
    there = {key for key in (ORPHAN.key, PURPOSE.key) if any(row.values[key] for row in rows)}
    return tuple(
        _RARE[column] if column in _RARE and column.key in there else column for column in columns
    )


def cases_document(found: tuple[SeriesInfo, ...], config: Config) -> Document:
    """Return the table of cases on their GPU models."""
    rows = tuple(
        Row(
            {
                "case": info.case.label,
                "fingerprint": info.case_key,
                "gpu_model": info.gpu_model,
                "environment": info.environment_key,
                "results": info.results,
                "last_started": info.last_started,
            }
        )
        for info in found
    )
    count = len({info.case_key for info in found})
    return Document(
        kind="cases",
        title="",
        summary=f"{counted(count, 'case')} in {len(found)} series in {config.store.shown}",
        facts={"cases": count, "series": len(found), "store": config.store.shown},
        tables=(Table("cases", CASE_COLUMNS, rows),),
    )


def _run_row(run: RunInfo, left_git: bool | None) -> Row:
    commit = run.checkout.commit
    return Row(
        {
            "run": run.run_id,
            "started_at": run.started_at,
            **commit_values(run.sha, dirty=run.checkout.dirty),
            "branch": run.checkout.branch,
            "gpu_model": run.gpu_model,
            "results": run.results,
            "complete": run.complete,
            "subject": commit.subject if commit else None,
            "purpose": purpose(run),
            "left_git": left_git,
            "device": run.device.uuid,
            "environment": run.environment_key,
            "demo": run.demo,
            "command": redact(run.command) if run.command else None,
            "notes": run.notes,
        }
    )
