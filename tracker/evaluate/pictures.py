"""The pictures of docs/how-it-decides.md, drawn from real runs.

    python -m tracker.evaluate.pictures [STORE] [--long STORE] [--out docs/images]

STORE is by default what ships as the demo. The monitor's and the history's pictures need series of
15 runs, which `--long` may have; they are left out where there are none. Needs matplotlib.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tracker.demo import load_demo, recorded_runs
from tracker.errors import TrackerError
from tracker.evaluate.alarms import opened
from tracker.gate import judge_run
from tracker.model import Case, VerdictKind
from tracker.queries import RunInfo, Series, histories, runs, series, series_list
from tracker.report.headings import planted_notes
from tracker.stats.change_point import history
from tracker.stats.level import Array
from tracker.stats.monitor import Monitor
from tracker.store import Store
from tracker.thresholds import Thresholds
from tracker.units import percent
from tracker.verdict import Verdict

INK, MUTED, GRID = "#1F2023", "#6B6B6B", "#E4E3E1"
BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"
_COLOUR = {
    VerdictKind.REGRESSION: RED,
    VerdictKind.IMPROVEMENT: GREEN,
    VerdictKind.UNDECIDED: "#CC79A7",
    VerdictKind.NO_CHANGE: MUTED,
}
_STYLE: Any = {
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "legend.frameon": False,
    "figure.facecolor": "white",
}
LONG = 15
# The noise of the series that is shown: a typical one of short kernels.
_SHOWN_NOISE = 0.004
_SHOWN = 14


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: its file's name, how it is drawn into a figure, and its size in inches."""

    name: str
    draw: Callable[[Any], None]
    size_in: tuple[float, float] = (8.6, 3.6)


def pictures(store: Store) -> Iterator[Picture]:
    """Yield the pictures of single runs that a store has the runs for."""
    found = _gpu_series(store, 4)
    if found:
        yield Picture("decides-process", lambda figure: draw_processes(figure, store, found))
    verdicts = changed_run(store)
    if verdicts:
        yield Picture("decides-gate", lambda figure: draw_gate(figure, verdicts), (8.6, 4.2))


def long_pictures(store: Store) -> Iterator[Picture]:
    """Yield the pictures of whole series, runs with planted losses left out."""
    planted = {info.run_id for info in runs(store, limit=None) if _is_planted(info)}
    lines = [_course(line, planted) for line in _gpu_series(store, LONG)]
    long = [line for line in lines if line.values.size >= LONG]
    if long:
        yield Picture("decides-monitor", lambda figure: draw_monitor(figure, long))
        yield Picture("decides-history", lambda figure: draw_history(figure, long))


@dataclass(frozen=True, slots=True)
class Course:
    """One series: its case and its bandwidth in GB/s, run by run."""

    case: Case
    values: Array

    @property
    def noise(self) -> float:
        """Relative standard deviation."""
        return float(np.std(self.values) / np.mean(self.values))


def _course(line: Series, planted: set[str]) -> Course:
    kept = ~np.isin(line.run_id, list(planted))
    return Course(line.case, line.bandwidth[kept] / 1e9)


def _gpu_series(store: Store, least: int) -> list[Series]:
    longest = [info for info in series_list(store) if info.results >= least]
    found = [series(store, info.case.fingerprint, info.gpu_model) for info in longest[:400]]
    return [line for line in found if line.environments[0].backend == "cuda"]


def _is_planted(info: RunInfo) -> bool:
    return bool(planted_notes(info.notes)) or "--planted-loss" in (info.command or "")


def draw_processes(figure: Any, store: Store, found: Sequence[Series]) -> None:
    """Draw all measurements of two cases process by process: a process is one draw."""
    small = min(found, key=lambda line: abs(float(np.median(line.median_s)) - 21e-6))
    large = min(found, key=lambda line: abs(float(np.median(line.median_s)) - 130e-6))
    infos = sorted(runs(store, limit=None, dirty=False), key=lambda info: info.started)[:8]
    rng = np.random.default_rng(1)
    for axes, line in zip(figure.subplots(1, 2), (small, large), strict=True):
        key = line.case.fingerprint
        results = histories(store, infos, cases=[key]).get(key, ())
        middle = float(np.median([r.summary.median_s for _, r in results if r.summary]))
        for place, (_, result) in enumerate(results, start=1):
            values = 100 * (np.array(result.measurements_s) / middle - 1)
            axes.plot(place + rng.uniform(-0.2, 0.2, values.size), values, ".", color=BLUE, ms=2.5)
            axes.plot([place - 0.3, place + 0.3], [np.median(values)] * 2, color=INK, lw=2)
        axes.set_title(f"{short(line.case)}, {middle * 1e6:.0f} us")
        axes.set_xlabel("fresh process")
        axes.set_ylabel("time against the middle, %")


def changed_run(store: Store) -> list[Verdict]:
    """Return the verdicts of the run with most changes, none where nothing changed."""
    judged = [
        judge_run(store, info, Thresholds(), today=date.fromisoformat(info.started_at[:10]))
        for info in runs(store, limit=30, dirty=False)
        if _is_planted(info)
    ]
    best = max(judged, key=lambda gate: _changes(gate.verdicts), default=None)
    return list(best.verdicts) if best is not None and _changes(best.verdicts) else []


def _changes(verdicts: Sequence[Verdict]) -> int:
    return sum(v.kind is VerdictKind.REGRESSION for v in verdicts)


def draw_gate(figure: Any, verdicts: Sequence[Verdict]) -> None:
    """Draw the largest effects of a run with their intervals, coloured by verdict."""
    compared = [v for v in verdicts if v.effect is not None and v.interval is not None]
    chosen = sorted(compared, key=lambda v: v.effect or 0.0)[: _SHOWN // 2]
    rest = [v for v in compared if v not in chosen]
    step = max(1, -(-len(rest) // (_SHOWN - len(chosen))))
    chosen += sorted(rest, key=lambda v: v.effect or 0.0)[::step][: _SHOWN - len(chosen)]
    axes = figure.subplots()
    for place, verdict in enumerate(reversed(chosen)):
        low, high = verdict.interval or (0.0, 0.0)
        colour = _COLOUR[verdict.kind]
        axes.plot([100 * low, 100 * high], [place, place], color=colour, lw=2)
        axes.plot([100 * (verdict.effect or 0.0)], [place], "o", color=colour, ms=5)
    labels = [f"{short(v.case)}: {v.kind.value}" for v in reversed(chosen)]
    axes.set_yticks(range(len(chosen)), labels)
    axes.axvline(0, color=INK, lw=1)
    axes.set_xlabel("change of bandwidth with its 99.9 % interval, %")
    axes.set_title(f"{len(chosen)} of {len(compared)} cases of a run with a planted slow-down")


def draw_monitor(figure: Any, long: Sequence[Course]) -> None:
    """Draw a real series with a drop planted into its last runs, and what the monitor says."""
    line = min(long, key=lambda course: abs(course.noise - _SHOWN_NOISE))
    values = line.values
    drop = 5 * line.noise
    shown = np.concatenate([values, values[:6] * (1 - drop)])
    monitor = Monitor()
    axes = figure.subplots()
    level, width = float(np.mean(values)), float(np.std(values))
    axes.axhspan(level - width, level + width, color=GRID, lw=0)
    axes.axhline(level, color=MUTED, lw=1)
    axes.plot(range(1, shown.size + 1), shown, "-", color=MUTED, lw=0.8)
    for place, value in enumerate(shown, start=1):
        verdict = monitor.update(float(value))
        axes.plot([place], [value], "o", color=_COLOUR[verdict.kind], ms=6)
        if verdict.kind is VerdictKind.REGRESSION and verdict.change_at is not None:
            effect = percent(verdict.effect or 0.0, signed=True)
            text = f"called after {place - verdict.change_at} runs: {effect}"
            axes.annotate(text, (place, value), (0, -24), textcoords="offset points", ha="right")
    axes.axvline(values.size + 0.5, color=RED, lw=1, ls=":")
    for kind in (VerdictKind.NO_CHANGE, VerdictKind.UNDECIDED, VerdictKind.REGRESSION):
        axes.plot([], [], "o", color=_COLOUR[kind], label=kind.value)
    axes.legend(loc="lower left", ncols=3)
    axes.margins(y=0.2)
    axes.set_title(
        f"{short(line.case)}: {values.size} runs as measured, then {percent(drop)} slower"
    )
    axes.set_xlabel("run")
    axes.set_ylabel("GB/s")


def draw_history(figure: Any, long: Sequence[Course]) -> None:
    """Draw the most restless series, then the same with a lasting loss, and the levels found."""
    line = max(long, key=lambda course: course.noise)
    quiet = min(long, key=lambda course: abs(course.noise - _SHOWN_NOISE))
    half = quiet.values.size // 2
    stepped = quiet.values * np.where(np.arange(quiet.values.size) < half, 1.0, 0.985)
    told = ("as measured, the most restless", "as measured, then 1.5 % slower")
    courses = ((line.case, line.values), (quiet.case, stepped))
    for axes, (case, values), what in zip(figure.subplots(1, 2), courses, told, strict=True):
        axes.plot(range(1, values.size + 1), values, "o-", color=BLUE, lw=0.8, ms=4)
        edges = [0, *(c.index for c in history(list(values)).changes), values.size]
        for begin, end in pairwise(edges):
            middle = float(np.median(values[begin:end]))
            axes.plot([begin + 1, end], [middle, middle], color=INK, lw=2)
        changes = {2: "no change point", 3: "one change point"}.get(len(edges), "change points")
        axes.set_title(f"{short(case)}\n{what}: {changes}", fontsize=9.5)
        axes.set_xlabel("run")
        axes.set_ylabel("GB/s")


def short(case: Case) -> str:
    """Return a case's name without its parameters, the size as a number of values."""
    count = prod(case.shape)
    size = f"{count / 2**20:.0f} Mi" if count >= 2**20 else str(count)
    odd = "" if case.alignment == "aligned" else f" {case.alignment}"
    return f"{case.kernel}/{case.implementation} {case.dtype} {size}{odd}"


def write(picture: Picture, folder: Path) -> Path:
    """Draw a picture and write it as PNG. Raises ImportError without matplotlib."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{picture.name}.png"
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=picture.size_in, dpi=130, layout="constrained")
        FigureCanvasAgg(figure)
        picture.draw(figure)
        figure.savefig(path, format="png", metadata={"Software": None})
    return path


@contextmanager
def demo() -> Iterator[Store]:
    """Give a store with the demo's runs."""
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/demo.db") as store:
        load_demo(store, recorded_runs())
        yield store


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw all pictures; the exit code is 2 where a store or matplotlib is missing."""
    parser = argparse.ArgumentParser(prog="python -m tracker.evaluate.pictures")
    parser.add_argument("store", nargs="?", help="a store's URL; by default the demo's runs")
    parser.add_argument("--long", metavar="STORE", help="a store with long series; may be packed")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    given = parser.parse_args(arguments)
    try:
        with opened(given.store) if given.store else demo() as store:
            for picture in (*pictures(store), *(() if given.long else long_pictures(store))):
                print(write(picture, given.out))
        if given.long:
            with opened(given.long) as store:
                for picture in long_pictures(store):
                    print(write(picture, given.out))
    except (TrackerError, ImportError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
