"""The pictures of docs/how-it-decides.md, drawn from real runs.

    python -m tracker.evaluate.pictures [STORE] [--out docs/images]

STORE is by default what ships as the demo. The monitor's picture needs a series of 20 runs and is
left out where the store has none. Needs matplotlib.
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
from tracker.gate import judge_run
from tracker.model import Case, VerdictKind
from tracker.queries import Series, histories, runs, series, series_list
from tracker.report.headings import planted_notes
from tracker.stats.change_point import history
from tracker.stats.level import fit
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
LONG = 20
_SHOWN = 14


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: its file's name, how it is drawn into a figure, and its size in inches."""

    name: str
    draw: Callable[[Any], None]
    size_in: tuple[float, float] = (8.6, 3.6)


def pictures(store: Store) -> Iterator[Picture]:
    """Yield the pictures that a store has the runs for."""
    longest = sorted(series_list(store), key=lambda info: -info.results)
    found = [series(store, info.case.fingerprint, info.gpu_model) for info in longest[:400]]
    found = [line for line in found if len(line) >= 4 and line.environments[0].backend == "cuda"]
    if found:
        yield Picture("decides-process", lambda figure: draw_processes(figure, store, found))
    verdicts = changed_run(store)
    if verdicts:
        yield Picture("decides-gate", lambda figure: draw_gate(figure, verdicts), (8.6, 4.2))
    long = [line for line in found if len(line) >= LONG]
    if long:
        yield Picture("decides-monitor", lambda figure: draw_monitor(figure, long))
        yield Picture("decides-history", lambda figure: draw_history(figure, long))


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
        if planted_notes(info.notes) or "--planted-loss" in (info.command or "")
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


def draw_monitor(figure: Any, long: Sequence[Series]) -> None:
    """Draw a real series with a drop planted into its last runs, and what the monitor says."""
    line = _typical(long)
    values = line.bandwidth / 1e9
    noise = float(np.sqrt(fit(values[None, :]).variance[0]))
    drop = 2.5 * noise / float(values.mean())
    shown = np.concatenate([values, values[: min(6, len(values))] * (1 - drop)])
    monitor = Monitor()
    verdicts = [monitor.update(float(value)) for value in shown]
    axes = figure.subplots()
    level = float(np.mean(values))
    axes.axhspan(level - noise, level + noise, color=GRID, lw=0)
    axes.axhline(level, color=MUTED, lw=1)
    axes.plot(range(1, shown.size + 1), shown, "-", color=MUTED, lw=0.8)
    for place, (value, verdict) in enumerate(zip(shown, verdicts, strict=True), start=1):
        axes.plot([place], [value], "o", color=_COLOUR[verdict.kind], ms=6)
        if verdict.kind is VerdictKind.REGRESSION and verdict.change_at is not None:
            effect = percent(verdict.effect or 0.0, signed=True)
            text = f"called after {place - verdict.change_at} runs: {effect}"
            axes.annotate(text, (place, value), (-8, -14), textcoords="offset points", ha="right")
    axes.axvline(values.size + 0.5, color=RED, lw=1, ls=":")
    for kind in (VerdictKind.NO_CHANGE, VerdictKind.UNDECIDED, VerdictKind.REGRESSION):
        axes.plot([], [], "o", color=_COLOUR[kind], label=kind.value)
    axes.legend(loc="lower left", ncols=3)
    axes.margins(y=0.2)
    title = f"{short(line.case)}: {values.size} runs as measured, then {percent(drop)} slower"
    axes.set_title(title)
    axes.set_xlabel("run")
    axes.set_ylabel("GB/s")


def draw_history(figure: Any, long: Sequence[Series]) -> None:
    """Draw the series with the most restless runs, with the levels that the history rule sees."""
    line = max(long, key=lambda found: float(np.std(np.log(found.median_s))))
    values = line.bandwidth / 1e9
    axes = figure.subplots()
    axes.plot(range(1, values.size + 1), values, "o-", color=BLUE, lw=0.8, ms=4)
    edges = [0, *(c.index for c in history(list(values)).changes), values.size]
    for begin, end in pairwise(edges):
        part = values[begin:end]
        axes.plot([begin + 1, end], [float(np.median(part))] * 2, color=INK, lw=2)
    told = f"{len(edges) - 2} changes of level" if len(edges) > 2 else "no change of level"
    axes.set_title(f"{short(line.case)}, the most restless series: {told}")
    axes.set_xlabel("run")
    axes.set_ylabel("GB/s")


def short(case: Case) -> str:
    """Return a case's name without its parameters, the size as a number of values."""
    count = prod(case.shape)
    size = f"{count / 2**20:.0f} Mi" if count >= 2**20 else str(count)
    odd = "" if case.alignment == "aligned" else f" {case.alignment}"
    return f"{case.kernel}/{case.implementation} {case.dtype} {size}{odd}"


def _typical(long: Sequence[Series]) -> Series:
    """Return a quiet series of a large case, the median one by noise."""
    large = [line for line in long if float(np.median(line.bytes_moved)) >= 2**28] or list(long)
    ordered = sorted(large, key=lambda line: float(np.std(np.log(line.median_s))))
    return ordered[len(ordered) // 2]


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
def opened(address: str | None) -> Iterator[Store]:
    """Give the store at an address, by default one with the demo's runs."""
    if address is not None:
        with Store.open(address, read_only=True) as store:
            yield store
        return
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/demo.db") as store:
        load_demo(store, recorded_runs())
        yield store


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw all pictures; the exit code is 2 where a store or matplotlib is missing."""
    parser = argparse.ArgumentParser(prog="python -m tracker.evaluate.pictures")
    parser.add_argument("store", nargs="?", help="a store's URL; by default the demo's runs")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    given = parser.parse_args(arguments)
    try:
        with opened(given.store) as store:
            for picture in pictures(store):
                print(write(picture, given.out))
    except (TrackerError, ImportError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
