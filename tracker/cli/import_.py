"""`bandwatch import`: put other tools' results, or an exported store, into the store."""

from collections.abc import Sequence
from pathlib import Path

import click

from tracker import git
from tracker.cli.options import refuse_idle, report_command
from tracker.cli.record import recorded_document
from tracker.config import Config, prepare_folder
from tracker.importers import FORMATS, Hints, bring_in, dated_as_held, is_export, read_files
from tracker.report.document import Document
from tracker.report.formats import Format
from tracker.store import Store


@click.command("import", short_help="Put other tools' results into the store.")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@click.option(
    "--from",
    "source",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="Which tool wrote the files.",
)
@click.option("--gpu", metavar="MODEL", help="The GPU model measured, where the files do not say.")
@click.option("--commit", metavar="REF", help="The commit measured, where the files do not say.")
@click.option("--run-id", metavar="ID", help="All files are shards of this one run.")
@report_command
def command(
    *,
    files: tuple[Path, ...],
    source: str,
    gpu: str | None,
    commit: str | None,
    run_id: str | None,
    form: Format,
    config: Config,
) -> Document:
    """Put results of pytest-benchmark, nvbench, Google Benchmark or asv into the store.

    Folders are searched for asv's results. Also run records, and what `bandwatch export` wrote as
    JSON lines, CSV or Parquet, which makes an empty store identical to the exported one. All files
    go in together or not at all; importing them again changes nothing.

    Example: bandwatch import run.json
    """
    del form
    exported = [file for file in files if is_export(file)]
    if exported:
        _refuse_idle_hints(exported, everything=len(exported) == len(files), tool=source)
    others = [file for file in files if file not in exported]
    named = git.commit(commit, config.root) if commit else None
    hints = Hints(gpu or None, named, run_id or None)
    imported = read_files(others, source, hints)
    prepare_folder(config.store)
    notes = list(imported.notes)
    with Store.open(config.store.url) as store:
        runs = dated_as_held(store, imported)
        outcomes, restored = bring_in(store, runs, exported)
    for file, done in zip(exported, restored, strict=True):
        counts = ", ".join(f"{count} {kind}" for kind, count in done.added.items() if count)
        same = "; the store is identical to the exported one" if done.identical else ""
        notes.append(f"{file}: added {counts or 'nothing'}{same}")
    return recorded_document(
        outcomes,
        tuple(notes),
        config,
        verb="imported",
        restored=(
            sum(done.added["runs"] for done in restored),
            sum(done.held for done in restored),
        ),
    )


def _refuse_idle_hints(exported: Sequence[Path], *, everything: bool, tool: str) -> None:
    """Refuse what cannot be said of files that `bandwatch export` wrote: they say it themselves."""
    names = ("run_id", *(("source",) if tool != FORMATS[0] else ()))
    reason = f"{exported[0]} is of `bandwatch export` and says itself what it holds"
    refuse_idle(reason, *names, *(("gpu", "commit") if everything else ()))
