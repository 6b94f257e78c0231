"""`bandwatch demo`: recorded runs of a real GPU in a store of their own, to look around."""

from datetime import UTC, datetime
from pathlib import Path

import click

from tracker.cli.options import report_command, row_limit
from tracker.config import Config, StoreChoice, prepare_folder
from tracker.demo import STORE_NAME, load_demo, planted, recorded_runs
from tracker.gate import Gate, judge_run
from tracker.queries import find_run, runs
from tracker.report.document import Document
from tracker.report.formats import Format
from tracker.report.headings import run_heading
from tracker.report.verdicts import Heading, verdict_document
from tracker.store import Store

_FOLDER = ".bandwatch"


@click.command("demo", short_help="Look around with recorded runs of a real GPU.")
@click.option("--all", "everything", is_flag=True, help="Show unchanged cases too, however many.")
@report_command
def command(*, everything: bool, form: Format, config: Config) -> Document:
    """Load recorded runs of a real GPU into a store of their own, and judge the one to look at.

    That is the run with a slow-down planted on purpose, where there is one, else the newest. Your
    own store is not touched: without --store the runs go to .bandwatch/demo.db. The exit code is 0
    whatever the verdict.

    Example: bandwatch demo
    """
    shipped = recorded_runs()
    choice = demo_store(config)
    prepare_folder(choice)
    with Store.open(choice.url) as store:
        load_demo(store, shipped)
        marked = [run.run_id for run in shipped if planted((run,))]
        chosen = find_run(store, marked[-1] if marked else shipped[-1].run_id)
        gate = judge_run(store, chosen, config.thresholds, today=datetime.now(UTC).date())
        commits = {info.sha for info in runs(store, limit=None)}
    heading = _heading(gate, choice, f"{len(shipped)} recorded runs of {len(commits)} commits")
    limit = row_limit(form, everything=everything)
    document = verdict_document(
        heading, gate.judged, gate.code, limit=limit, every_row="bandwatch demo --all"
    )
    return _harmless(document)


def demo_store(config: Config) -> StoreChoice:
    """Return the store that --store names, else one of the demo's own beside the usual one."""
    if config.store.source == "the flag":
        return config.store
    path = config.root / _FOLDER / STORE_NAME
    return StoreChoice(f"sqlite:///{path}", "the demo")


def _heading(gate: Gate, choice: StoreChoice, loaded: str) -> Heading:
    heading = run_heading("Demo", gate.run, gate.notes)
    url = _short(choice)
    return Heading(
        heading.title,
        (*heading.fact_lines, f"loaded {loaded} into {url}"),
        heading.facts,
        (
            *heading.notes,
            f"see them: bandwatch dashboard --store {url}",
            f"list them: bandwatch list --store {url}",
        ),
    )


def _short(choice: StoreChoice) -> str:
    """Return the store as it is shortest to type from the working folder."""
    file = choice.file
    if file is not None and file.is_relative_to(Path.cwd()):
        return str(file.relative_to(Path.cwd()))
    return choice.shown


def _harmless(document: Document) -> Document:
    # The demo shows a regression; it is no failure of the machine that shows it.
    return Document(
        kind="demo",
        title=document.title,
        summary=document.summary.rpartition(": exit")[0] or document.summary,
        facts=document.facts,
        fact_lines=document.fact_lines,
        tables=document.tables,
        notes=document.notes,
        failed=document.failed,
    )
