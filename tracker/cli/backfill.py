"""`bandwatch backfill`: measure commits that the store lacks, into their place in history."""

from collections.abc import Sequence

import click

from tracker import git
from tracker.cli.options import note, report_command
from tracker.config import Config, prepare_folder
from tracker.errors import ExitCode, GitError
from tracker.loop.backfill import Filled, Wish, backfill
from tracker.loop.durations import Duration
from tracker.loop.notebook import Notebook
from tracker.loop.repository import Repository
from tracker.loop.workplace import workplace
from tracker.queries import runs
from tracker.report.columns import show_sha
from tracker.report.document import Column, Document, Kind, Row, Table
from tracker.report.formats import Format
from tracker.store import Store

COLUMNS = (
    Column("commit", "commit", Kind.WORD, show_sha),
    Column("outcome", "outcome", Kind.WORD),
    Column("results", "results", Kind.NUMBER),
    Column("reason", "reason"),
)


@click.command("backfill", short_help="Measure commits that the store lacks.")
@click.argument("commits", metavar="OLD..NEW")
@click.option("--budget", type=Duration(), metavar="TIME", help="Stop after this time, as in 2h.")
@click.option("--quick", is_flag=True, help="The suite's small selection.")
@click.option("--all-parents", is_flag=True, help="Commits of merged branches too.")
@click.option("--retry", is_flag=True, help="Try commits again that did not build.")
@report_command
def command(
    *,
    commits: str,
    budget: float | None,
    quick: bool,
    all_parents: bool,
    retry: bool,
    form: Format,
    config: Config,
) -> Document:
    """Measure the commits of OLD..NEW that the store lacks in today's environment.

    The newest first, then the middle, then the quarters: whenever the budget ends, what is there
    covers the range evenly. Each commit is recorded as soon as it is measured; the same call goes
    on with the rest.

    Exit code 0: the range is covered; 3: commits are left or were skipped.

    Example: bandwatch backfill main~5..main --budget 2h
    """
    del form
    repository = Repository(config.root)
    line = _line(commits, repository, first_parent=not all_parents)
    prepare_folder(config.store)
    with Store.open(config.store.url) as store, workplace(config, "backfill", note) as bench:
        store.learn_commits(git.history(config.root, line[-1]))
        notebook = Notebook.open(bench.folder / "broken.json", "backfill", "broken")
        if retry:
            notebook.clear()
        wish = Wish(line, lambda key: _known(store, key), quick, budget)
        filled = backfill(wish, bench, notebook, store.record)
    return _document(line, filled)


def _line(text: str, repository: Repository, *, first_parent: bool) -> tuple[str, ...]:
    old, dots, new = text.partition("..")
    if not dots or not old or new.startswith("."):
        raise GitError(f"cannot use the range {text!a}: expected OLD..NEW, such as main~20..main")
    line = repository.line(
        repository.resolve(old), repository.resolve(new or "HEAD"), first_parent=first_parent
    )
    if not line:
        raise GitError(f"cannot backfill {text!a}: no commit lies in this range")
    return line


def _known(store: Store, environment: str) -> Sequence[str]:
    found = runs(store, environment_key=environment, complete=True, dirty=False, limit=None)
    return [run.sha for run in found if run.sha is not None]


def _document(line: Sequence[str], filled: Filled) -> Document:
    rows = [
        Row({"commit": sha, "outcome": "recorded", "results": filled.recorded[sha]})
        for sha in reversed(line)
        if sha in filled.recorded
    ]
    rows += [
        Row({"commit": sha, "outcome": "skipped", "reason": filled.skipped[sha]})
        for sha in reversed(line)
        if sha in filled.skipped
    ]
    rows += [Row({"commit": sha, "outcome": "left"}) for sha in filled.left]
    rest = f", {len(filled.left)} are left for the next call" if filled.left else ""
    skipped = f", {len(filled.skipped)} skipped" if filled.skipped else ""
    code = ExitCode.UNDECIDED if filled.left or filled.skipped else ExitCode.OK
    return Document(
        kind="backfill",
        title="",
        summary=f"{len(filled.recorded)} of {len(line)} commits measured{skipped}{rest}",
        facts={
            "commits": len(line),
            "recorded": len(filled.recorded),
            "skipped": len(filled.skipped),
            "left": len(filled.left),
        },
        tables=(Table("commits", COLUMNS, tuple(rows)),),
        exit_code=code,
        failed=bool(filled.left),
    )
