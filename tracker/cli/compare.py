"""`bandwatch compare`: one run against another, whichever they are."""

from datetime import UTC, datetime

import click

from tracker import queries
from tracker.cli.options import report_command, row_limit
from tracker.config import Config
from tracker.errors import NotFoundError
from tracker.occasion import Meant, meant, newest
from tracker.queries import RunInfo, runs
from tracker.queries.columns import collector_paused
from tracker.report.document import Document
from tracker.report.formats import Format
from tracker.report.headings import comparison_heading
from tracker.report.medians import medians_document
from tracker.report.verdicts import verdict_document
from tracker.store import Store


@click.command("compare", short_help="Judge run B against run A.")
@click.argument("a")
@click.argument("b", default="latest")
@click.option("--gpu", metavar="MODEL", help="Only runs on this GPU model.")
@click.option("--all", "everything", is_flag=True, help="Show unchanged cases too, however many.")
@click.option("--medians", is_flag=True, help="Lay the medians side by side, judge nothing.")
@report_command
def command(
    *,
    a: str,
    b: str,
    gpu: str | None,
    everything: bool,
    medians: bool,
    form: Format,
    config: Config,
) -> Document:
    """Judge B (by default the newest run of the suite) against A, on what both measured.

    A and B are run ids, commits (or the beginning of either) or branches. A commit or branch stands
    for its newest run of the suite, of A on the GPU model of B where there is one; where that is B
    itself, A is the run before it. A newer run for something else, such as a study's, is told and
    compared where it is named by its id. The exit code is that of `bandwatch check`.

    Example: bandwatch compare main
    """
    with (
        Store.open(config.store.url, read_only=True) as store,
        store.one_moment("compare runs"),
        collector_paused(),
    ):
        found = resolve(store, b, gpu)
        head = found.run
        base, notes = _base(store, a, head, gpu)
        if medians:
            heading = comparison_heading(base, head, tuple(dict.fromkeys((*found.named, *notes))))
            limit = row_limit(form, everything=everything)
            return medians_document(heading, queries.medians(store, base, head), limit)
        # Late: judging loads the statistics.
        from tracker.gate import compare_runs

        gate = compare_runs(store, base, head, config.thresholds, today=datetime.now(UTC).date())
    told = dict.fromkeys((*found.named, *notes, *gate.notes))
    heading = comparison_heading(base, head, tuple(told))
    return verdict_document(
        heading,
        gate.judged,
        gate.code,
        limit=row_limit(form, everything=everything),
        command=f"bandwatch compare {a} {b}",
    )


def resolve(store: Store, reference: str, gpu_model: str | None) -> Meant:
    """Return the run that a branch, a run id or a commit stands for; a branch goes first."""
    on_branch = runs(store, branch=reference, gpu_model=gpu_model, limit=1)
    if not on_branch:
        return meant(store, reference, gpu_model)
    # A branch that has nothing of the suite stands for the newest of what it has.
    return newest(store, branch=reference, gpu_model=gpu_model) or Meant(on_branch[0])


def _base(
    store: Store, reference: str, head: RunInfo, asked: str | None
) -> tuple[RunInfo, tuple[str, ...]]:
    """Return run A and what there is to say of what its name was taken for."""
    try:
        found = resolve(store, reference, asked or head.gpu_model)
    except NotFoundError:
        found = resolve(store, reference, asked)
    if found.run.number != head.number:
        return found.run, found.named
    other = _before(store, reference, head)
    if other is None:
        raise NotFoundError(
            f"cannot compare run {head.run_id} with itself: {reference!a} stands for no other run "
            f"of the suite on {head.gpu_model}; measure again, or name another "
            "(`bandwatch list` shows them)"
        )
    return other, (f"the newest run of {reference} is B itself, so A is the run before it",)


def _before(store: Store, reference: str, head: RunInfo) -> RunInfo | None:
    """Return the newest run but head that a name stands for, None where it is of head alone."""
    model = head.gpu_model
    if runs(store, branch=reference, gpu_model=model, limit=1):
        found = newest(store, branch=reference, gpu_model=model, but=head)
    elif reference == "latest":
        found = newest(store, gpu_model=model, but=head)
    elif head.run_id.startswith(reference):
        return None
    else:
        found = newest(store, sha=head.sha, gpu_model=model, but=head)
    return found.run if found else None
