"""The read layer: everything that the dashboard, the commands and the baseline read."""

from tracker.queries.baseline import candidates
from tracker.queries.cases import FILTERS, filter_counts, find_case, series_list
from tracker.queries.floors import Floors, floors
from tracker.queries.info import ModelInfo, Overview, RunInfo, SeriesInfo
from tracker.queries.order import ancestors, commits, measured_commits, orphans
from tracker.queries.results import (
    SIDE,
    ResultTable,
    SideBySide,
    both_results,
    code_fingerprints,
    histories,
    result_table,
    results,
    side_by_side,
)
from tracker.queries.runs import (
    branches,
    count_runs,
    find_run,
    gpu_models,
    load_run,
    overview,
    revision,
    runs,
    runs_by_number,
)
from tracker.queries.series import Series, measurements, series

__all__ = [
    "FILTERS",
    "SIDE",
    "Floors",
    "ModelInfo",
    "Overview",
    "ResultTable",
    "RunInfo",
    "Series",
    "SeriesInfo",
    "SideBySide",
    "ancestors",
    "both_results",
    "branches",
    "candidates",
    "code_fingerprints",
    "commits",
    "count_runs",
    "filter_counts",
    "find_case",
    "find_run",
    "floors",
    "gpu_models",
    "histories",
    "load_run",
    "measured_commits",
    "measurements",
    "orphans",
    "overview",
    "result_table",
    "results",
    "revision",
    "runs",
    "runs_by_number",
    "series",
    "series_list",
    "side_by_side",
]
