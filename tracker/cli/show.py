"""`bandwatch show`: one result with all that stands beside its time."""

import click

from tracker.cli.history import only_model
from tracker.cli.options import report_command
from tracker.config import Config
from tracker.errors import NotFoundError
from tracker.model import Case
from tracker.occasion import first_of_suite, meant, purpose
from tracker.queries import RunInfo, find_case, results, runs_by_number, series
from tracker.report.document import Document
from tracker.report.formats import Format
from tracker.report.headings import run_heading
from tracker.report.one_result import result_document
from tracker.store import Store


@click.command("show", short_help="Show one result, and where it stands under the roofline.")
@click.argument("case", nargs=-1, required=True)
@click.option("--run", help="A run id or a commit; by default the newest run that has the case.")
@click.option("--gpu", metavar="MODEL", help="The GPU model; needed when there are several.")
@report_command
def command(
    *, case: tuple[str, ...], run: str | None, gpu: str | None, form: Format, config: Config
) -> Document:
    """Show the result of one case in one run, with all that stands beside its time.

    An empty kernel's time, shares of the theoretical bandwidth, of a copy and of a sum of two
    arrays of as many bytes, and the roofline: intensity, ridge points, what is attainable.

    CASE is a fingerprint or its beginning, a label, or words that stand in the label of one case
    only. Of runs of something else than the suite, such as a study's, the newest is taken where no
    run of the suite has the case.

    Example: bandwatch show relu cuda_vector
    """
    del form
    with Store.open(config.store.url, read_only=True) as store:
        key, found = find_case(store, " ".join(case))
        notes: tuple[str, ...] = ()
        if run is not None:
            info = meant(store, run, gpu).run
        else:
            info, notes = _newest(store, key, found, gpu or only_model(store, key, found.label))
        there = results(store, info, cases=[key], measurements=False)
    if not there:
        raise NotFoundError(
            f"cannot show {found.label}: run {info.run_id} has no result of it; "
            f"`bandwatch history {key[:12]}` shows the commits that have"
        )
    return result_document(run_heading(found.label, info, notes), there[0])


def _newest(store: Store, key: str, case: Case, gpu_model: str) -> tuple[RunInfo, tuple[str, ...]]:
    """Return the newest run of the suite that has a case, else the newest, and what to say."""
    line = series(store, key, gpu_model, dirty=True)
    known = runs_by_number(store, line.number.tolist())
    order = sorted(known.values(), key=lambda run: (run.started, run.number), reverse=True)
    if not order:
        raise NotFoundError(f"cannot show {case.label}: {store.name} has no result on {gpu_model}")
    chosen = first_of_suite(order) or order[0]
    if chosen == order[0]:
        return chosen, ()
    newer = f"{order[0].run_id}, {purpose(order[0])}"
    return chosen, (f"the newest run of the suite that has the case; a newer one is {newer}",)
