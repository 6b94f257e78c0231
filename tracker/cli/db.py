"""`bandwatch db`: keep a store: its state, copies, backups, checks, pruning, upgrades."""

import time
from math import isfinite
from pathlib import Path

import click

from tracker.cli.options import MOST, refuse_idle, report_command
from tracker.config import Config
from tracker.errors import ExitCode, StoreError
from tracker.report.document import Column, Document, Kind, Row, Table
from tracker.report.formats import Format
from tracker.store import Store
from tracker.store.checking import check_store
from tracker.store.copying import backup as back_up
from tracker.store.copying import copy_store
from tracker.store.pruning import prune as prune_store
from tracker.store.upgrading import store_info, upgrade_store
from tracker.units import size

TABLE_COLUMNS = (
    Column("table", "table", Kind.ID),
    Column("rows", "rows", Kind.NUMBER),
)
COPY_COLUMNS = (*TABLE_COLUMNS, Column("sha256", "sha256", Kind.ID, drop=1))
FINDING_COLUMNS = (Column("finding", "finding", Kind.TEXT),)


@click.group("db", short_help="Keep a store: info, upgrade, check, copy, backup, prune.")
def command() -> None:
    """Keep a store for years.

    Example: bandwatch db info
    """


@command.command("info", short_help="Show what a store is and how much it holds.")
@report_command
def info(*, form: Format, config: Config) -> Document:
    """Show a store's engine, schema, size, revision and rows; of any schema version.

    Example: bandwatch db info
    """
    del form
    found = store_info(config.store.url)
    state = "" if found.version == found.known else f", this version knows {found.known}"
    rows = tuple(Row({"table": k, "rows": v}) for k, v in (found.rows or {}).items())
    return Document(
        kind="store",
        title="",
        summary=f"{found.name}: {found.engine}, schema {found.version}{state}, "
        f"{size(found.size_bytes)}",
        facts={
            "store": found.name,
            "engine": found.engine,
            "schema": found.version,
            "known_schema": found.known,
            "size_bytes": found.size_bytes,
            "store_id": found.store_id,
            "created_at": found.created_at,
            "revision": found.revision,
            "oldest_run": found.oldest_run,
            "newest_run": found.newest_run,
            "thinned_runs": found.thinned_runs,
        },
        fact_lines=_told(
            ("revision", found.revision),
            ("created", found.created_at),
            ("oldest run", found.oldest_run),
            ("newest run", found.newest_run),
            ("runs without measurements (pruned)", found.thinned_runs or None),
        ),
        tables=(Table("tables", TABLE_COLUMNS, rows),) if rows else (),
    )


def _told(*pairs: tuple[str, object]) -> tuple[str, ...]:
    return tuple(f"{name}: {value}" for name, value in pairs if value is not None)


@command.command("upgrade", short_help="Bring a store to this version's schema.")
@report_command
def upgrade(*, form: Format, config: Config) -> Document:
    """Bring a store to this version's schema: every step or none.

    An SQLite file is backed up beside itself first; of a server's store make a backup yourself.

    Example: bandwatch db upgrade
    """
    del form
    done = upgrade_store(config.store.url)
    before = done.before or "empty"
    changed = done.before != done.after
    told = f"upgraded from {before} to {done.after}" if changed else f"is at {done.after} already"
    return Document(
        kind="upgraded",
        title="",
        summary=f"{config.store.shown} {told}",
        facts={
            "before": done.before,
            "after": done.after,
            "backup": str(done.backup) if done.backup else None,
        },
        notes=(f"backup: {done.backup}",) if done.backup else (),
    )


@command.command("check", short_help="Look for damage in a store.")
@click.option("--quick", is_flag=True, help="Only structure and counts, not each run's content.")
@report_command
def check(*, quick: bool, form: Format, config: Config) -> Document:
    """Look for damage: the file, counts, and every run's content against its digest.

    Exits with 5 when something is wrong.

    Example: bandwatch db check
    """
    del form
    with Store.open(config.store.url, read_only=True) as store:
        findings = tuple(check_store(store, content=not quick))
    told = f"{len(findings)} findings" if findings else "nothing is wrong"
    return Document(
        kind="checked",
        title="",
        summary=f"{told} in {config.store.shown}",
        facts={"findings": len(findings), "store": config.store.shown, "quick": quick},
        tables=(Table("findings", FINDING_COLUMNS, tuple(Row({"finding": f}) for f in findings)),)
        if findings
        else (),
        notes=("restore a backup (docs/operate.md)",) if findings else (),
        exit_code=int(ExitCode.INTERNAL if findings else ExitCode.OK),
        failed=bool(findings),
    )


@command.command("copy", short_help="Copy a whole store into an empty one.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@report_command
def copy(*, source: str, target: str, form: Format, config: Config) -> Document:
    """Copy everything from one store into an empty one, between engines too, and verify it.

    Example: bandwatch db copy sqlite:///runs.db sqlite:///copy.db
    """
    del form, config
    refuse_idle("FROM and TO are the stores", "store")
    with Store.open(source, read_only=True) as old, Store.open(target) as new:
        copied = copy_store(old, new)
        shown = f"{old.name} to {new.name}"
    rows = tuple(
        Row({"table": name, "rows": count, "sha256": copied.digests[name]})
        for name, count in copied.rows.items()
    )
    return Document(
        kind="copied",
        title="",
        summary=f"copied and verified {sum(copied.rows.values())} rows from {shown}",
        facts={"rows": sum(copied.rows.values())},
        tables=(Table("tables", COPY_COLUMNS, rows),),
    )


@command.command("backup", short_help="Write a store into a new SQLite file.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@report_command
def backup(*, file: Path, form: Format, config: Config) -> Document:
    """Write a store into a new SQLite file while others use it; a server's store too.

    Example: bandwatch db backup copy-of-the-store.db
    """
    del form
    with Store.open(config.store.url, read_only=True) as store:
        written = back_up(store, file)
    return Document(
        kind="backup",
        title="",
        summary=f"backed up {config.store.shown} into {file}, {size(written)}",
        facts={"file": str(file), "size_bytes": written},
    )


@command.command("prune", short_help="Drop old measurements; summaries stay.")
@click.option("--older-than", type=float, required=True, metavar="DAYS", help="Only older runs.")
@click.option(
    "--keep-runs",
    type=click.IntRange(0, MOST),
    default=100,
    show_default=True,
    help="Spare so many newest runs of each GPU model.",
)
@click.option("--apply", is_flag=True, help="Do it; without this it is only counted.")
@report_command
def prune(
    *, older_than: float, keep_runs: int, apply: bool, form: Format, config: Config
) -> Document:
    """Drop the measurements of old runs. Summaries and all else stay; it cannot be undone.

    A run is covered when it is older than --older-than days and at least --keep-runs runs of its
    GPU model are newer. Judging two runs needs the measurements of both.

    Example: bandwatch db prune --older-than 365
    """
    del form
    if not isfinite(older_than) or older_than < 0:
        raise StoreError(f"cannot prune: --older-than is {older_than}; expected 0 or more days")
    with Store.open(config.store.url, read_only=not apply) as store:
        found = prune_store(
            store,
            now_s=time.time(),
            older_than_days=older_than,
            keep_runs=keep_runs,
            apply=apply,
        )
    done = "dropped" if apply else "would drop"
    notes = ("nothing was changed; repeat with --apply to do it",) if not apply else ()
    return Document(
        kind="pruned",
        title="",
        summary=f"{done} {found.samples} samples of {found.runs} runs, {size(found.bytes)}",
        facts={
            "applied": apply,
            "runs": found.runs,
            "samples": found.samples,
            "bytes": found.bytes,
        },
        notes=notes,
    )
