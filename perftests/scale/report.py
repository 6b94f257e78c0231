"""The table of goals, figures and misses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from perftests.scale.stores import HUGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

INTRODUCTION = """\
# A store at scale

Written by `python -m perftests.scale`; not part of `make bench` or `make test`. Stores come from
`tracker.store.generate`: 1,000 cases with 100 measurements each, one GPU model, so that every run
is a candidate for the baseline of every other; "small" holds 100 runs (100,000 results), "large"
1,000 runs (1,000,000 results), "huge" 10,000 runs (10,000,000 results: the server copied the rows
of "large" nine times, each copy with ids, names and times of its own). Times come in steps of
32 ns, as CUDA events give them; finer ones take more bytes. PostgreSQL runs beside the benchmark
with fsync on. pytest-benchmark runs in an empty folder: in a project it would load that as well.

Wall times are medians of repeats in this process, without the start of Python; the spread is from
the fastest to the slowest. Processor time is that of the same repeats, the server's included: on a
machine that others use it says more than the wall clock. A goal is met when the wall time meets
it; "met in processor time" says that only waiting for a processor was too long.
"""
# What was predicted and found when the store was made faster: written by hand, kept beside this.
NOTES = Path(__file__).with_name("notes.md")


@dataclass(frozen=True)
class Line:
    """One row: a figure, its goal, what was measured."""

    figure: str
    engine: str
    goal: str
    wall: str
    cpu: str
    outcome: str

    def text(self) -> str:
        """Return the row in Markdown."""
        cells = (self.figure, self.engine, self.goal, self.wall, self.cpu, self.outcome)
        return f"| {' | '.join(cells)} |"


def table(measured: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Return the page: `measured` is pytest-benchmark's JSON, `facts` sizes of fresh stores."""
    benchmarks = measured["benchmarks"]
    timed = [b for b in benchmarks if b["extra_info"]["figure"] != "compare"]
    compare = [b for b in benchmarks if b["extra_info"]["figure"] == "compare"]
    lines = [
        *map(_timed, timed),
        *_growth(timed),
        *_sizes(facts),
        *(line for b in compare for line in _compared(b["extra_info"])),
    ]
    loads = [b["extra_info"]["load"] for b in benchmarks]
    cpu = measured["machine_info"]["cpu"]
    at = " to ".join(
        dict.fromkeys(f(b["extra_info"]["at"] for b in benchmarks) for f in (min, max))
    )
    where = (
        f"Measured {at} UTC on {cpu.get('brand_raw', 'a CPU')}, "
        f"{cpu.get('count', '?')} processors, load average {min(loads):.1f} to {max(loads):.1f}."
    )
    missed = [line for line in lines if line.outcome.startswith("**")]
    head = "| figure | engine | goal | wall | processor time | |\n|---|---|---|---|---|---|"
    body = "\n".join(line.text() for line in lines)
    count = f"{len(missed)} of {sum(line.goal != '' for line in lines)} goals are missed."
    return f"{INTRODUCTION}\n{where} {count}\n\n{head}\n{body}\n\n{NOTES.read_text()}"


def _timed(benchmark: Mapping[str, Any]) -> Line:
    info, stats = benchmark["extra_info"], benchmark["stats"]
    goal, cpu = info["goal_s"], median(info["cpu_s"])
    return Line(
        info["figure"],
        info["engine"],
        "" if goal is None else f"<= {_seconds(goal)}",
        f"{_seconds(stats['median'])} ({_seconds(stats['min'])} to {_seconds(stats['max'])})",
        f"{_seconds(cpu)} ({_seconds(min(info['cpu_s']))} at least)",
        "" if goal is None else _outcome(stats["median"] <= goal, cpu <= goal),
    )


def _outcome(met: bool, met_in_cpu: bool) -> str:
    if met:
        return "met"
    return "**missed**; met in processor time" if met_in_cpu else "**missed**"


def _growth(timed: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    found = {(b["extra_info"]["figure"], b["extra_info"]["engine"]): b for b in timed}
    spans = (("small", "large", "<= 1.2x"), ("large", HUGE, ""))
    for name, engine, (start, end, goal) in product(
        ("record", "check"), ("sqlite", "postgresql"), spans
    ):
        small, large = (found.get((f"{name}, {size}", engine)) for size in (start, end))
        if small is not None and large is not None:
            walls = [b["stats"]["median"] for b in (small, large)]
            cpus = [median(b["extra_info"]["cpu_s"]) for b in (small, large)]
            wall, cpu = walls[1] / walls[0], cpus[1] / cpus[0]
            outcome = _outcome(wall <= 1.2, cpu <= 1.2) if goal else ""
            figure = f"growth of {name}, {start} to {end}"
            yield Line(figure, engine, goal, f"{wall:.2f}x", f"{cpu:.2f}x", outcome)


def _sizes(facts: Mapping[str, Any]) -> Iterator[Line]:
    for name, fact in facts.items():
        engine, size = name.split()
        if size not in {"large", HUGE}:
            continue
        found = fact["bytes_per_result"]
        yield Line(
            f"disk per result, 100 measurements, {size}",
            engine,
            "<= 600 bytes",
            f"{found:.0f} bytes",
            "",
            _outcome(found <= 600, met_in_cpu=False),
        )


def _compared(info: Mapping[str, Any]) -> Iterator[Line]:
    ways = (
        ("", "judged, from the start of Python"),
        ("in process, ", "judged, in one process"),
        ("side by side, ", "only read and laid side by side, in one process"),
    )
    # The goal is for the same work on the same data: the other judges nothing, and a store holds
    # the measurements.
    same = ("side by side, ", "with")
    for how, started in ways:
        ours = info["seconds"][f"{how}ours"], info["cpu"][f"{how}ours"]
        for name, what in (("stats only", "without"), ("with data", "with")):
            theirs = info["seconds"][how + name], info["cpu"][how + name]
            wall, cpu = _ratio(theirs[0], ours[0]), _ratio(theirs[1], ours[1])
            both = " against ".join(_seconds(median(values)) for values in (ours[0], theirs[0]))
            yield Line(
                f"compare two of 100 runs, against pytest-benchmark's files {what} data, {started}",
                "sqlite",
                ">= 10x faster" if (how, what) == same else "",
                f"{wall:.1f}x ({both})",
                f"{cpu:.1f}x",
                _outcome(wall >= 10, cpu >= 10) if (how, what) == same else "",
            )


def _ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    return median(theirs) / median(ours)


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1e3:.1f} ms"
