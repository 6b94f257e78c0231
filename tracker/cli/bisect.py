"""`bandwatch bisect`: the commit that changed one case's speed."""

import os
from dataclasses import replace
from datetime import UTC, datetime

import click

from tracker.cli.options import note, report_command
from tracker.config import Config
from tracker.loop.bisect import Question, bisect
from tracker.loop.bisected import bisect_document
from tracker.loop.durations import Duration
from tracker.loop.known import test_of
from tracker.loop.repository import Repository
from tracker.loop.workplace import workplace
from tracker.report.document import Document
from tracker.report.formats import Format

# Cores from which on two more processes may import beside the four of a block.
_SPACIOUS = 8


@click.command("bisect", short_help="Find the commit that changed one case's speed.")
@click.argument("case", nargs=-1, required=True)
@click.argument("good")
@click.argument("bad")
@click.option("--all-parents", is_flag=True, help="Look inside merged branches too.")
@click.option(
    "--certainty",
    type=click.FloatRange(0.5, 1, max_open=True),
    default=0.95,
    show_default=True,
    help="Stop when one commit is this likely.",
)
@click.option(
    "--readings",
    type=click.IntRange(1, 1000),
    default=40,
    show_default=True,
    help="At most so many commits are measured, some of them more than once.",
)
@click.option("--budget", type=Duration(), metavar="TIME", help="Stop after this time, as in 1h.")
@click.option("--restart", is_flag=True, help="Forget an earlier search for the same.")
@report_command
def command(
    *,
    case: tuple[str, ...],
    good: str,
    bad: str,
    all_parents: bool,
    certainty: float,
    readings: int,
    budget: float | None,
    restart: bool,
    form: Format,
    config: Config,
) -> Document:
    """Find the commit after GOOD, up to BAD, that changed the speed of CASE.

    CASE is a case of the store (its label, fingerprint or some words of it) or a pytest id. Only
    that case is measured, each commit in turns with the last good one. Commits that do not build
    are skipped. Interrupted, the same call goes on where it stopped.

    Exit code 0: found; 3: not certain, or the two ends do not differ.

    Example: bandwatch bisect relu cuda_vector v1.0 main
    """
    del form
    repository = Repository(config.root)
    question = Question(
        test=test_of(" ".join(case), config),
        good=repository.resolve(good),
        bad=repository.resolve(bad),
        first_parent=not all_parents,
        certainty=certainty,
        readings=readings,
        seconds=budget,
    )
    with workplace(config, f"bisect/{question.key}", note) as bench:
        if restart:
            bench.clear()
        free = replace(bench, spacious=len(os.sched_getaffinity(0)) >= _SPACIOUS)
        answer = bisect(question, free, repository, config.thresholds, datetime.now(UTC).date())
    return bisect_document(question, answer, repository)
