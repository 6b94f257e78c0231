"""The pages: script, title, address, how to read each, and the parameters that it knows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageInfo:
    """A page: its script beside the entry script, title, and address below the server's.

    `help` says how to read it, `words` are the glossary's that it uses, `keys` its parameters.
    """

    file: str
    title: str
    path: str
    help: str
    words: tuple[str, ...]
    keys: tuple[str, ...]


OVERVIEW = PageInfo(
    "views/overview.py",
    "Overview",
    "",
    "For each GPU model its newest run of the suite, judged against its baseline. Below, every "
    "case of all models that asks for attention, worst first: how much, how sure, since which "
    "commit, whose. "
    "What is marked fixed was lost and has come back. Select a row to see its series and the "
    "command that measures it again.",
    (
        *("case", "verdict", "change point", "interval", "p-value", "baseline", "not run"),
        "launch-bound",
    ),
    ("gpu", "branch"),
)
SERIES = PageInfo(
    "views/series.py",
    "Series",
    "series",
    "Each point is the median of one run and the band holds the middle half of its measurements; "
    "faint dots are measurements. The dotted step is the level between change points, a dashed "
    "rule is a change point, a hatched band a change of environment, a cross a result that is not "
    "trusted. Click a point to see its commit.",
    (
        *("series", "case", "run", "bandwidth", "fraction of copy", "fraction of sum"),
        *("empty kernel", "launch-bound", "change point", "environment"),
    ),
    (
        *("gpu", "branch", "kernel", "implementation", "dtype", "case", "metric", "window"),
        *("axis", "zero", "log", "until"),
    ),
)
COMPARE = PageInfo(
    "views/compare.py",
    "Compare",
    "compare",
    "Two runs case by case. Bars are the intervals of the change of bandwidth, left of zero is "
    "slower; rows are sorted by certainty, then by size. Select a row for both distributions.",
    (
        *("run", "verdict", "interval", "p-value", "bandwidth", "fraction of copy"),
        *("fraction of sum", "empty kernel", "launch-bound"),
    ),
    ("gpu", "base", "head", "base_run", "head_run", "kernel", "show"),
)
CHANGES = PageInfo(
    "views/changes.py",
    "Changes",
    "changes",
    "Every change of the window with its state: new until someone looks at it, then acknowledged, "
    "accepted or reopened, and fixed once the level is back. Changes are change points of whole "
    "series; while a GPU model has at most twelve runs, verdicts on single runs stand in. Those of "
    "one commit range and kernel stand together, losses first.",
    ("change point", "case", "verdict", "p-value", "launch-bound"),
    ("gpu", "branch", "kernel", "window", "state"),
)
KERNELS = PageInfo(
    "views/kernels.py",
    "Kernels",
    "kernels",
    "Every implementation of one kernel side by side in the newest run of the suite: for one case, "
    "over sizes, and across GPU models as percent of the theoretical peak.",
    (
        "kernel",
        "implementation",
        "bandwidth",
        "fraction of copy",
        "fraction of sum",
        "empty kernel",
        "launch-bound",
    ),
    ("gpu", "branch", "kernel", "dtype", "shape", "metric"),
)
ROOFLINE = PageInfo(
    "views/roofline.py",
    "Roofline",
    "roofline",
    "Each mark is a case of the newest run of the suite. Below a roof means slower than that roof "
    "allows; left of the ridge point the memory is the limit.",
    (
        "arithmetic intensity",
        "ridge point",
        "bandwidth",
        "fraction of copy",
        "empty kernel",
        "launch-bound",
    ),
    ("gpu", "branch", "dtype", "kernel"),
)
CORRECTNESS = PageInfo(
    "views/correctness.py",
    "Correctness",
    "correctness",
    "How close each case's output came to what is right. Error over bound is taken element by "
    "element, each with its own bound, and the worst is shown: at most 1 passes, and results that "
    "are rounded as well as their type allows come to 1. The worst error and its bound may be of "
    "another element. A case that fails has no time: a fast wrong answer is not a result.",
    ("case", "worst ratio"),
    ("gpu", "branch", "kernel", "show"),
)
RUNS = PageInfo(
    "views/runs.py",
    "Runs",
    "runs",
    "Every run with its environment, device states and raw measurements, and why it can or cannot "
    "be compared with the newest one.",
    ("run", "environment", "measurement", "case", "empty kernel", "launch-bound"),
    ("gpu", "branch", "run", "tab", "case"),
)
PAGES = (OVERVIEW, SERIES, COMPARE, CHANGES, KERNELS, ROOFLINE, CORRECTNESS, RUNS)
