"""`bandwatch backfill`: measure commits that the store lacks, into their place in history."""

from collections.abc import Sequence
from functools import partial

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
from tracker.model import Run
from tracker.queries import results, runs
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
@click.option("-k", "keyword", metavar="EXPR", help="Only tests that pytest's -k EXPR selects.")
@click.option("--quick", is_flag=True, help="The suite's small selection.")
@click.option("--all-parents", is_flag=True, help="Commits of merged branches too.")
@click.option("--retry", is_flag=True, help="Try commits again that did not build.")
@report_command
def command(
    *,
    commits: str,
    budget: float | None,
    keyword: str | None,
    quick: bool,
    all_parents: bool,
    retry: bool,
    form: Format,
    config: Config,
) -> Document:
    """Measure the commits of OLD..NEW that the store lacks in today's environment.

    The newest first, then the middle, then the quarters: whenever the budget ends, what is there
    covers the range evenly. Each commit is recorded as soon as it is measured; the same call goes
    on with the rest. A commit with results of most of the wanted cases is not measured again.

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
        wish = Wish(line, partial(_known, store, line), quick, keyword, budget)
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


def _known(store: Store, line: Sequence[str], newest: Run) -> frozenset[str]:
    """Return the commits of the line whose runs have most of what the newest one brought."""
    wanted = {result.case.fingerprint for result in newest.results}
    key = newest.environment.fingerprint
    held: dict[str, set[str]] = {}
    # What ended early is measured again, unless a part was all that was wanted.
    complete = True if newest.complete else None
    for run in runs(store, environment_key=key, dirty=False, complete=complete, limit=None):
        if run.sha in line and run.sha is not None:
            found = results(store, run, cases=sorted(wanted), measurements=False)
            held.setdefault(run.sha, set()).update(item.case.fingerprint for item in found)
    return frozenset(sha for sha, cases in held.items() if 2 * len(cases) > len(wanted))


def _document(line: Sequence[str], filled: Filled) -> Document:
    rows = [
        Row(
            {
                "commit": sha,
                "outcome": "recorded",
                "results": filled.recorded[sha],
                "reason": filled.failed.get(sha),
            }
        )
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
    known = f", {len(filled.known)} had results" if filled.known else ""
    code = ExitCode.UNDECIDED if filled.left or filled.skipped else ExitCode.OK
    return Document(
        kind="backfill",
        title="",
        summary=f"{len(filled.recorded)} of {len(line)} commits measured{known}{skipped}{rest}",
        facts={
            "commits": len(line),
            "recorded": len(filled.recorded),
            "known": len(filled.known),
            "skipped": len(filled.skipped),
            "left": len(filled.left),
        },
        tables=(Table("commits", COLUMNS, tuple(rows)),),
        exit_code=code,
        failed=bool(filled.left),
    )
