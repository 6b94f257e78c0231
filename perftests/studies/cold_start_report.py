"""What the study of cold starts makes of its times: rows, the verdict and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from perftests.studies.pictures import LINES, MARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.studies.first_call import FirstCall
    from perftests.studies.tables import Row

EMPTY, FILLED = "empty", "filled"
_WITHIN, _IN_A_ROW = 0.1, 5


@dataclass(frozen=True)
class Found:
    """The first calls of one way, `kernel/implementation`, in one state of its caches."""

    way: str
    state: str
    runs: tuple[FirstCall, ...]

    def median_of(self, name: str) -> float:
        """Return the median of a time over the processes."""
        return median(float(getattr(run, name)) for run in self.runs)

    @property
    def compile_s(self) -> float:
        """Median of compiling, or of finding what was compiled."""
        return self.median_of("compile_s")

    @property
    def load_s(self) -> float | None:
        """Median of loading, None where it is not told apart."""
        return None if self.runs[0].load_s is None else self.median_of("load_s")

    @property
    def launch_s(self) -> float:
        """Median of the rest of the first call."""
        return self.median_of("launch_s")

    @property
    def steady_s(self) -> float:
        """Median of a warm call, waited for."""
        return median(steady(run.calls_s) for run in self.runs)


def steady(calls_s: Sequence[float]) -> float:
    """Return the median of the second half."""
    return median(calls_s[len(calls_s) // 2 :])


def settled(calls_s: Sequence[float]) -> int:
    """Return the number of the call, the first being 1, from which five are near the steady time.

    `calls_s` begin with the second call.
    """
    most = steady(calls_s) * (1 + _WITHIN)
    for index in range(len(calls_s)):
        if max(calls_s[index : index + _IN_A_ROW]) <= most:
            return index + 2
    return len(calls_s) + 2


def first_rows(found: Sequence[Found]) -> list[Row]:
    """Return a row for each way and state of the caches."""
    rows: list[Row] = []
    for each in sorted(found, key=lambda one: one.way):
        row: Row = {
            "way": each.way,
            "caches": each.state,
            "imports": each.median_of("import_s"),
            "context": each.median_of("context_s"),
            "compile": each.compile_s,
        }
        if each.load_s is not None:
            row["load"] = each.load_s
        row["launch"] = each.launch_s
        row["first call"] = each.median_of("first_s")
        row["in steady calls"] = each.median_of("first_s") / each.steady_s
        row["compiled"] = any(run.compiled for run in each.runs)
        row["right"] = all(run.right for run in each.runs)
        row["processes"] = len(each.runs)
        rows.append(row)
    return rows


def call_rows(found: Sequence[Found]) -> list[Row]:
    """Return a row for each way: what comes after the first call, with filled caches."""
    return [
        {
            "way": each.way,
            "second call": median(run.calls_s[0] for run in each.runs),
            "tenth call": median(run.calls_s[8] for run in each.runs),
            "steady": each.steady_s,
            "settled at call": round(median(settled(run.calls_s) for run in each.runs)),
            "pace": each.median_of("pace_s"),
        }
        for each in sorted(found, key=lambda one: one.way)
        if each.state == FILLED
    ]


def verdict(firsts: Sequence[Row], calls: Sequence[Row], *, gpu: bool) -> str:
    """Return the paragraph that the rows amount to."""
    wrong = [row for row in firsts if not row["right"]]
    if wrong:
        return f"Not judged: the first call of {wrong[0]['way']} gave a wrong output."
    where = "" if gpu else "on this CPU, where g++ compiles our sources, "
    told = []
    for state in (EMPTY, FILLED):
        ratios = [float(row["in steady calls"]) for row in firsts if row["caches"] == state]
        if ratios:
            span = f"{min(ratios):,.0f} to {max(ratios):,.0f}"
            told.append(f"{span} steady calls with {state} caches")
    least = min(float(row["in steady calls"]) for row in firsts)
    holds = "holds" if least >= 2 else "does not hold everywhere"
    text = f"The claim {holds}: {where}a first call takes {' and '.join(told)}."
    return " ".join([text, *_saved(firsts), *_after(calls)])


def _saved(firsts: Sequence[Row]) -> list[str]:
    """Return what a filled cache saves of each way that it saves anything of."""
    by_key = {(row["way"], row["caches"]): float(row["first call"]) for row in firsts}
    parts = [
        f"{way} from {by_key[way, EMPTY]:.2g} to {by_key[way, FILLED]:.2g} s"
        for way, state in by_key
        if state == EMPTY and by_key[way, EMPTY] > 2 * by_key.get((way, FILLED), float("inf"))
    ]
    return [f"A filled cache shortens {', '.join(parts)}."] if parts else []


def _after(calls: Sequence[Row]) -> list[str]:
    if not calls:
        return []
    late = max(calls, key=lambda row: int(row["settled at call"]))
    slow = max(float(row["second call"]) / float(row["steady"]) for row in calls)
    text = (
        f"The second call takes up to {slow:.1f} times a steady one, and the slowest to settle, "
        f"{late['way']}, is steady from call {late['settled at call']} on."
    )
    return [text]


def draw(figure: Any, found: Sequence[Found]) -> None:
    """Draw the parts of each first call, and the calls after it on their way to the steady time."""
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    ordered = sorted(found, key=lambda one: one.way)
    _draw_parts(left, ordered)
    for index, each in enumerate(one for one in ordered if one.state == FILLED):
        calls = [each.runs[0].first_s, *each.runs[0].calls_s]
        at = range(1, len(calls) + 1)
        right.plot(
            at, [s * 1e6 for s in calls], marker=MARKS[index % len(MARKS)], markevery=0.1,
            markersize=4, linewidth=1.2, label=each.way, color=LINES[index % len(LINES)],
        )  # fmt: skip
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_ylim(top=right.get_ylim()[1] * 30)
    right.set_xlabel("number of the call")
    right.set_ylabel("us, each call waited for")
    right.set_title("Then, with filled caches")
    right.legend(loc="upper right", fontsize=8)


def _draw_parts(axes: Any, found: Sequence[Found]) -> None:
    """Draw a line for each first call with a mark for each part, on a logarithmic scale."""
    parts = (("compile", "compile_s"), ("load", "load_s"), ("launch and rest", "launch_s"))
    for index, (label, name) in enumerate(parts):
        known = [(getattr(each, name) or 0.0, place) for place, each in enumerate(found)]
        shown = [(seconds, place) for seconds, place in known if seconds > 0]
        axes.plot(
            [seconds for seconds, _ in shown], [place for _, place in shown],
            MARKS[index], color=LINES[index + 1], label=label, markersize=7,
        )  # fmt: skip
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * 8)
    for place, each in enumerate(found):
        at = {"va": "center", "ha": "right", "fontsize": 8}
        axes.text(high * 7, place, _told(each.median_of("first_s")), **at)
    names = [f"{each.way}, {each.state}" for each in found]
    axes.set_yticks(range(len(found)), names, fontsize=8)
    axes.set_ylim(len(found) - 0.4, -1.4)
    axes.set_xlabel("seconds; at the right the whole call")
    axes.set_title("First call")
    axes.legend(loc="upper left", ncols=3, fontsize=8, columnspacing=1, handletextpad=0.2)


def _told(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.2g} ms"


UNITS = {
    "imports": "s", "context": "s", "compile": "ms", "load": "ms", "launch": "ms",
    "first call": "ms", "second call": "us", "tenth call": "us", "steady": "us", "pace": "us",
}  # fmt: skip
