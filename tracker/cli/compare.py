"""`bandwatch compare`: one run against another, whichever they are."""

from datetime import UTC, datetime

import click

from tracker.cli.options import report_command, row_limit
from tracker.config import Config
from tracker.errors import NotFoundError
from tracker.gate import compare_runs
from tracker.queries import RunInfo, find_run, runs
from tracker.report.document import Document
from tracker.report.formats import Format
from tracker.report.headings import comparison_heading
from tracker.report.verdicts import verdict_document
from tracker.store import Store


@click.command("compare", short_help="Judge run B against run A.")
@click.argument("a")
@click.argument("b", default="latest")
@click.option("--gpu", metavar="MODEL", help="Only runs on this GPU model.")
@click.option("--all", "everything", is_flag=True, help="Show unchanged cases too, however many.")
@report_command
def command(
    *, a: str, b: str, gpu: str | None, everything: bool, form: Format, config: Config
) -> Document:
    """Judge B (by default the newest run) against A, on the cases that both measured.

    A and B are run ids, commits (or the beginning of either) or branches. A commit or branch stands
    for its newest run, of A on the GPU model of B where there is one. The exit code is that of
    `bandwatch check`.

    Example: bandwatch compare main
    """
    with Store.open(config.store.url, read_only=True) as store:
        head = resolve(store, b, gpu)
        base = _base(store, a, gpu or head.gpu_model, gpu)
        gate = compare_runs(store, base, head, config.thresholds, today=datetime.now(UTC).date())
    heading = comparison_heading(base, head, gate.notes)
    return verdict_document(
        heading, gate.judged, gate.code, limit=row_limit(form, everything=everything)
    )


def resolve(store: Store, reference: str, gpu_model: str | None) -> RunInfo:
    """Return the run that a branch, a run id or a commit stands for; a branch goes first."""
    on_branch = runs(store, branch=reference, gpu_model=gpu_model, limit=1)
    return on_branch[0] if on_branch else find_run(store, reference, gpu_model=gpu_model)


def _base(store: Store, reference: str, preferred: str, asked: str | None) -> RunInfo:
    try:
        return resolve(store, reference, preferred)
    except NotFoundError:
        return resolve(store, reference, asked)
