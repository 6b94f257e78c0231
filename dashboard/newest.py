"""The newest run of the suite on a GPU model and branch: what pages about one run start from."""

from dataclasses import dataclass

import pandas as pd

from dashboard import data, details, facts, filters, notices
from dashboard.filters import ALL, BRANCH, GPU
from dashboard.layout import Parameters, View
from dashboard.notices import Notice
from tracker.occasion import Meant
from tracker.queries import RunInfo


@dataclass(frozen=True, slots=True)
class Newest:
    """The chosen GPU model and branch, their newest clean run of the suite, and its results."""

    gpu: str
    branch: str | None
    meant: Meant
    results: pd.DataFrame

    @property
    def run(self) -> RunInfo:
        """The run itself."""
        return self.meant.run

    @property
    def parameters(self) -> Parameters:
        """What a link needs to choose the same."""
        return {GPU.key: self.gpu, BRANCH.key: self.branch or ALL}


def missing(view: View, gpu: str, branch: str | None) -> Notice:
    """Return what to say where no clean run of the suite is: there are others, or none at all."""
    if data.clean_runs(view.snapshot, gpu, branch, 1):
        return notices.none_of_the_suite()
    if data.runs(view.snapshot, gpu, branch, 1):
        return notices.only_uncommitted()
    return notices.nothing_for(("the branch",))


def tell(view: View, meant: Meant) -> None:
    """Draw what identifies the run that a page shows, and which newer ones it is not."""
    facts.line(("newest run", *details.short_facts(meant.run)), view.colours)
    if meant.passed_over:
        facts.line(meant.named, view.colours)


def choose(view: View) -> Newest | Parameters:
    """Draw the filters of GPU model and branch and return the newest run of the suite there.

    Where there is none, that is told and the parameters of the page are returned.
    """
    gpu = filters.choose_model(data.models(view.snapshot), view.address)
    branch = filters.choose_branch(data.branches(view.snapshot, gpu), view.address)
    meant = data.meant(view.snapshot, gpu, branch)
    if meant is None:
        notices.show(missing(view, gpu, branch), view.colours)
        return {GPU.key: gpu, BRANCH.key: branch or ALL}
    results = data.latest(view.snapshot, meant.run.run_id)
    if not len(results):
        notices.show(notices.no_results(), view.colours)
        return {GPU.key: gpu, BRANCH.key: branch or ALL}
    return Newest(gpu, branch, meant, results)
