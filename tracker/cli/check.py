"""`bandwatch check`: judge a stored run against its baseline; the gate for CI."""

from datetime import UTC, datetime

import click

from tracker.cli.options import report_command, row_limit
from tracker.config import Config
from tracker.judged_again import judge_meant
from tracker.merge_base import standing
from tracker.occasion import meant
from tracker.report.document import Document
from tracker.report.formats import Format
from tracker.report.headings import run_heading
from tracker.report.verdicts import verdict_document
from tracker.store import Store


@click.command("check", short_help="Judge a run against its baseline; the exit code says how.")
@click.argument("run", default="latest")
@click.option("--gpu", metavar="MODEL", help="Only runs on this GPU model.")
@click.option("--all", "everything", is_flag=True, help="Show unchanged cases too, however many.")
@report_command
def command(
    *, run: str, gpu: str | None, everything: bool, form: Format, config: Config
) -> Document:
    """Judge RUN against its baseline: the newest clean run of an ancestor commit.

    On a branch that is the merge base or what stands before it, where the store has results of it.

    RUN is a run id, a commit or the beginning of either; by default the newest run of the suite,
    with what measured its cases again: a study's run, for one, is judged where it is named. The
    exit code is 0 for no regression, 1 for a regression or a wrong result, 3 for undecided, 4 for
    an unfit environment.

    Example: bandwatch check --format markdown
    """
    with Store.open(config.store.url, read_only=True) as store:
        asked = meant(store, run, gpu)
        info = asked.run
        stand = standing(store, info, config.root, here=config.store.shown, team=None)
        today = datetime.now(UTC).date()
        gate = judge_meant(store, asked, config.thresholds, today=today, ancestors=stand.line)
    told = (*asked.told, *gate.notes, *((stand.told,) if stand.told else ()))
    heading = run_heading("Verdicts", info, told)
    limit = row_limit(form, everything=everything)
    return verdict_document(heading, gate.judged, gate.code, limit=limit)
