"""`bandwatch compare`: one run against another, whichever they are."""

from datetime import UTC, datetime

import click

from tracker.cli.options import report_command, row_limit
from tracker.config import Config
from tracker.errors import NotFoundError
from tracker.gate import compare_runs
from tracker.queries import RunInfo, find_run, runs
from tracker.queries.columns import collector_paused
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
    for its newest run, of A on the GPU model of B where there is one; where that is B itself, A is
    the run before it. The exit code is that of `bandwatch check`.

    Example: bandwatch compare main
    """
    with Store.open(config.store.url, read_only=True) as store, collector_paused():
        head = resolve(store, b, gpu)
        base, note = _base(store, a, head, gpu)
        gate = compare_runs(store, base, head, config.thresholds, today=datetime.now(UTC).date())
    heading = comparison_heading(base, head, (*note, *gate.notes))
    return verdict_document(
        heading,
        gate.judged,
        gate.code,
        limit=row_limit(form, everything=everything),
        command=f"bandwatch compare {a} {b}",
    )


def resolve(store: Store, reference: str, gpu_model: str | None) -> RunInfo:
    """Return the run that a branch, a run id or a commit stands for; a branch goes first."""
    on_branch = runs(store, branch=reference, gpu_model=gpu_model, limit=1)
    return on_branch[0] if on_branch else find_run(store, reference, gpu_model=gpu_model)


def _base(
    store: Store, reference: str, head: RunInfo, asked: str | None
) -> tuple[RunInfo, tuple[str, ...]]:
    """Return run A and, where its name stands for B first of all, a note on what was taken."""
    try:
        named = resolve(store, reference, asked or head.gpu_model)
    except NotFoundError:
        named = resolve(store, reference, asked)
    if named.number != head.number:
        return named, ()
    other = _before(store, reference, head)
    if other is None:
        raise NotFoundError(
            f"cannot compare run {head.run_id} with itself: {reference!a} stands for no other run "
            f"on {head.gpu_model}; measure again, or name another (`bandwatch list` shows them)"
        )
    return other, (f"the newest run of {reference} is B itself, so A is the run before it",)


def _before(store: Store, reference: str, head: RunInfo) -> RunInfo | None:
    """Return the newest run but head that a name stands for, None where it is of head alone."""
    model = head.gpu_model
    found = runs(store, branch=reference, gpu_model=model, limit=2)
    if not found and reference == "latest":
        found = runs(store, gpu_model=model, limit=2)
    elif not found and not head.run_id.startswith(reference):
        found = runs(store, sha=head.sha, gpu_model=model, limit=2)
    return next((run for run in found if run.number != head.number), None)
