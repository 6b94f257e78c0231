"""`bandwatch compare`: one run against another, whichever they are."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from tracker import git, queries
from tracker.cli.options import report_command, row_limit
from tracker.config import Config
from tracker.errors import GitError, NotFoundError
from tracker.occasion import Meant, meant, newest
from tracker.queries import RunInfo, runs
from tracker.queries.columns import collector_paused
from tracker.report.document import Document
from tracker.report.formats import Format
from tracker.report.headings import comparison_heading
from tracker.report.side_by_side import side_by_side_document
from tracker.report.verdicts import verdict_document
from tracker.store import Store

_ALONE = "one run against one; bandwatch check takes further runs and the level before them too"


@click.command("compare", short_help="Judge run B against run A.")
@click.argument("a")
@click.argument("b", default="latest")
@click.option("--gpu", metavar="MODEL", help="Only runs on this GPU model.")
@click.option("--all", "everything", is_flag=True, help="Show unchanged cases too, however many.")
@click.option("--plain", is_flag=True, help="Lay the runs side by side, judge nothing.")
@report_command
def command(
    *,
    a: str,
    b: str,
    gpu: str | None,
    everything: bool,
    plain: bool,
    form: Format,
    config: Config,
) -> Document:
    """Judge B (by default the newest run of the suite) against A, on what both measured.

    A and B are run ids, commits (or the beginning of either) or branches. A commit or branch stands
    for its newest run of the suite, of A on the GPU model of B where there is one; where that is B
    itself, A is the run before it. A branch that was not measured under its name stands for its
    commit, else for its merge base with the head. A newer run for something else, such as a
    study's, is told and compared where it is named by its id. The exit code is that of
    `bandwatch check`.

    Example: bandwatch compare main
    """
    with (
        Store.open(config.store.url, read_only=True) as store,
        store.one_moment("compare runs"),
        collector_paused(),
    ):
        found = _Named(store, config.root)
        head, told = found.run(b, gpu)
        base, notes = _base(found, a, head, gpu)
        if plain:
            heading = comparison_heading(base, head, tuple(dict.fromkeys((*told, *notes))))
            limit = row_limit(form, everything=everything)
            return side_by_side_document(heading, queries.side_by_side(store, base, head), limit)
        # Late: judging loads the statistics.
        from tracker.gate import compare_runs

        gate = compare_runs(store, base, head, config.thresholds, today=datetime.now(UTC).date())
    every = dict.fromkeys((*told, *notes, *gate.notes))
    heading = comparison_heading(base, head, tuple(every), _ALONE)
    return verdict_document(
        heading,
        gate.judged,
        gate.code,
        limit=row_limit(form, everything=everything),
        every_row=f"bandwatch compare {a} {b} --all",
    )


@dataclass(frozen=True, slots=True)
class _Named:
    """Finds runs by what people call them; `root` is where git is asked."""

    store: Store
    root: Path

    def run(self, reference: str, gpu_model: str | None) -> tuple[RunInfo, tuple[str, ...]]:
        """Return the run that a branch, a run id or a commit stands for, and what to say of it.

        A branch goes first. Raises NotFoundError for none.
        """
        on_branch = runs(self.store, branch=reference, gpu_model=gpu_model, limit=1)
        if on_branch:
            # A branch that has nothing of the suite stands for the newest of what it has.
            of_suite = newest(self.store, branch=reference, gpu_model=gpu_model)
            found = of_suite or Meant(on_branch[0])
            return found.run, found.named
        try:
            found = meant(self.store, reference, gpu_model)
        except NotFoundError as missing:
            return self._by_git(reference, gpu_model, missing)
        return found.run, found.named

    def _by_git(
        self, reference: str, gpu_model: str | None, missing: NotFoundError
    ) -> tuple[RunInfo, tuple[str, ...]]:
        """Return the run of the commit that git calls so, else of its merge base with the head.

        Of a commit that was measured with its head detached, as a merge base is, the store knows no
        branch.
        """
        try:
            tip = git.resolve(reference, self.root)
            base = git.merge_base("HEAD", tip, self.root)
        except GitError:
            raise missing from None
        for sha in dict.fromkeys(filter(None, (tip, base))):
            try:
                found = meant(self.store, sha, gpu_model)
            except NotFoundError:
                continue
            instead = f"{reference} ({tip[:12]}) has no run: taken is its merge base, {sha[:12]}"
            return found.run, (*found.named, *(() if sha == tip else (instead,)))
        raise NotFoundError(
            f"cannot find run {reference!a} in {self.store.name}: neither {tip[:12]} nor its merge "
            "base with the head has one; `pytest --benchmark --benchmark-base` measures the latter"
        ) from None


def _base(
    find: _Named, reference: str, head: RunInfo, asked: str | None
) -> tuple[RunInfo, tuple[str, ...]]:
    """Return run A and what there is to say of what its name was taken for."""
    try:
        found, told = find.run(reference, asked or head.gpu_model)
    except NotFoundError:
        found, told = find.run(reference, asked)
    if found.number != head.number:
        return found, told
    other = _before(find.store, reference, head)
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
