"""The newest run on a GPU model and branch: what pages about one run start from."""

from dataclasses import dataclass

import pandas as pd

from dashboard import data, filters, notices
from dashboard.filters import ALL, BRANCH, GPU
from dashboard.layout import Parameters, View
from dashboard.notices import Notice
from tracker.queries import RunInfo


@dataclass(frozen=True, slots=True)
class Newest:
    """The chosen GPU model and branch, their newest clean run, and its results."""

    gpu: str
    branch: str | None
    run: RunInfo
    results: pd.DataFrame

    @property
    def parameters(self) -> Parameters:
        """What a link needs to choose the same."""
        return {GPU.key: self.gpu, BRANCH.key: self.branch or ALL}


def missing(view: View, gpu: str, branch: str | None) -> Notice:
    """Return what to say where no clean run is: there are others, or the branch has none."""
    if data.runs(view.snapshot, gpu, branch, 1):
        return notices.only_uncommitted()
    return notices.nothing_for(("the branch",))


def choose(view: View) -> Newest | Parameters:
    """Draw the filters of GPU model and branch and return the newest run there.

    Where there is none, that is told and the parameters of the page are returned.
    """
    gpu = filters.choose_model(data.models(view.snapshot), view.address)
    branch = filters.choose_branch(data.branches(view.snapshot, gpu), view.address)
    run = data.newest(view.snapshot, gpu, branch)
    if run is None:
        notices.show(missing(view, gpu, branch), view.colours)
        return {GPU.key: gpu, BRANCH.key: branch or ALL}
    results = data.latest(view.snapshot, run.run_id)
    if not len(results):
        notices.show(notices.no_results(), view.colours)
        return {GPU.key: gpu, BRANCH.key: branch or ALL}
    return Newest(gpu, branch, run, results)
