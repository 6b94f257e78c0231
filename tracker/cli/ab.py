"""`bandwatch ab`: two commits against each other, measured in turns."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from tracker import git
from tracker.cli.options import note, refuse_idle, report_command, row_limit
from tracker.commands import MOST_PAIRS, USUAL_PAIRS
from tracker.config import Config, prepare_folder
from tracker.errors import ExitCode
from tracker.loop.ab import Contest, Outcome, compare_commits
from tracker.loop.durations import Duration
from tracker.loop.repository import Repository
from tracker.loop.turns import Budget
from tracker.loop.workplace import workplace
from tracker.model import Run, fingerprint
from tracker.report.document import Document, Value
from tracker.report.formats import Format
from tracker.report.headings import checkout_words, environment_words
from tracker.report.verdicts import Heading, verdict_document
from tracker.store import Store
from tracker.units import counted
from tracker.verdict import exit_code


@click.command("ab", short_help="Measure two commits in turns until they are told apart.")
@click.argument("base")
@click.argument("head", default="HEAD")
@click.option("-k", "keyword", metavar="EXPR", help="Only tests that pytest's -k EXPR selects.")
@click.option("--quick", is_flag=True, help="The suite's small selection.")
@click.option(
    "--pairs",
    type=click.IntRange(2, MOST_PAIRS),
    default=USUAL_PAIRS,
    show_default=True,
    help="At most so many processes of each commit.",
)
@click.option("--budget", type=Duration(), metavar="TIME", help="Stop after this time, as in 30m.")
@click.option(
    "--resolution",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.01,
    show_default=True,
    help="Call a case unchanged once a loss of this fraction would have shown.",
)
@click.option("--record", is_flag=True, help="Put the runs of both commits into the store.")
@click.option("--all", "everything", is_flag=True, help="Show unchanged cases too, however many.")
@report_command
def command(
    *,
    base: str,
    head: str,
    keyword: str | None,
    quick: bool,
    pairs: int,
    budget: float | None,
    resolution: float,
    record: bool,
    everything: bool,
    form: Format,
    config: Config,
) -> Document:
    """Check out BASE and HEAD side by side and measure them in turns, each time in a fresh process.

    The order is base head head base and so on, so that a drift hits both alike. Four processes
    start together; each sleeps, without the GPU, until its turn, so one alone is timed. A case
    drops out as soon as it is decided. Uncommitted changes are not measured. Exit codes as of
    `check`, and 1 where a test of HEAD failed.

    Example: bandwatch ab main --quick
    """
    if not record:
        refuse_idle("without --record nothing goes into a store", "store")
    repository = Repository(config.root)
    contest = Contest(
        base=repository.resolve(base),
        head=repository.resolve(head),
        keyword=keyword,
        quick=quick,
        budget=Budget(pairs, budget),
        resolution=resolution,
    )
    key = fingerprint([contest.base, contest.head, keyword, quick])
    with workplace(config, f"ab/{key}", note) as bench:
        outcome = compare_commits(contest, bench, config.thresholds, datetime.now(UTC).date())
        if record:
            _record((*outcome.base_runs, *outcome.head_runs), config)
        bench.clear()
    return document(contest, outcome, config, row_limit(form, everything=everything))


def document(contest: Contest, outcome: Outcome, config: Config, limit: int | None) -> Document:
    """Return the report of a contest."""
    first_base, first_head = outcome.base_runs[0], outcome.head_runs[0]
    lines = (
        f"head: commit {checkout_words(first_head.checkout)}",
        f"base: commit {checkout_words(first_base.checkout)}",
        f"on {environment_words(first_head.environment)}",
        f"measured in turns, {outcome.pairs} processes of each commit at most",
    )
    facts: dict[str, Value] = {
        "base_commit": contest.base,
        "commit": contest.head,
        "pairs": outcome.pairs,
        "gpu_model": first_head.environment.gpu_model,
        "environment": first_head.environment.fingerprint,
    }
    changed = git.checkout(config.root, {}).dirty
    notes = (*outcome.notes, *(("uncommitted changes were not measured",) if changed else ()))
    return verdict_document(
        Heading("Two commits in turns", lines, facts, notes),
        outcome.judged,
        ExitCode.REGRESSION
        if outcome.failed
        else exit_code(item.verdict for item in outcome.judged),
        limit=limit,
        every_row="bandwatch ab --all",
    )


def _record(runs: Sequence[Run], config: Config) -> None:
    prepare_folder(config.store)
    with Store.open(config.store.url) as store:
        for run in runs:
            store.record(run)
    note(f"recorded {counted(len(runs), 'run')} in {config.store.shown}")
