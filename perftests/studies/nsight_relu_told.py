"""The article's numbers of ReLU beside ours, in a table, in words and as a picture."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftests.studies.frame import Draw
    from perftests.studies.tables import Row

BEFORE, AFTER = "cuda_scalar", "cuda_vector"
ARTICLE_BEFORE: Mapping[str, float] = {
    "GPU utilisation %": 62,
    "DRAM GB/s": 120,
    "DRAM % of peak": 100 * 120 / 900,
    "warp execution efficiency %": 78,
    "registers": 32,
    "threads a block": 128,
}
"""Article B, before; the device has 900 GB/s, as a V100."""
ARTICLE_GOAL: Mapping[str, float] = {
    "GPU utilisation %": 90,
    "DRAM GB/s": 900,
    "DRAM % of peak": 100,
    "warp execution efficiency %": 95,
    "registers": 24,
    "threads a block": 256,
}
"""Article B, its goals; of utilisation and efficiency more than that."""
_LIKE_A_COPY = 97.0
_NEAR = 85.0
"""Percent of the theoretical peak that count as near it: copies reach 85 to 92 (BabelStream)."""


def side_by_side(facts: Mapping[str, Row]) -> list[Row]:
    """Return a row for each metric: the article's before and goal, ours before and after."""
    metrics = dict.fromkeys([*ARTICLE_BEFORE, *facts[BEFORE], *facts[AFTER]])
    columns = (
        ("article, before", ARTICLE_BEFORE),
        ("article, goal", ARTICLE_GOAL),
        (f"{BEFORE}, before", facts[BEFORE]),
        (f"{AFTER}, after", facts[AFTER]),
    )
    rows: list[Row] = []
    for metric in metrics:
        row: Row = {"metric": metric}
        rows.append(row | {name: known[metric] for name, known in columns if metric in known})
    return rows


def verdict(facts: Mapping[str, Row], used: Sequence[Row], reason: str | None) -> str:
    """Return what the numbers say; `reason` tells why there are no counters."""
    before, after = facts[BEFORE], facts[AFTER]
    gain = _of(before, "time us") / _of(after, "time us")
    told = [f"The vector kernel is {gain:.2f} times as fast as the scalar one."]
    if reason:
        told.append(f"Nsight Compute gave no counters here: {reason}.")
    told += [_of_dram(before, after), _of_warps(before, after), _of_use(before, after, used)]
    if "registers" in before and "registers" in after:
        told.append(
            f"Registers: {_of(before, 'registers'):.0f} before and {_of(after, 'registers'):.0f} "
            "after (article: 32 and 24; 16 is the least that a launch takes); neither limits the "
            "warps in flight."
            if max(_of(before, "registers"), _of(after, "registers")) <= 32
            else f"Registers: {_of(before, 'registers'):.0f} before, "
            f"{_of(after, 'registers'):.0f} after (article: 32 and 24)."
        )
    return " ".join(text for text in told if text)


def _of_dram(before: Row, after: Row) -> str:
    metric = "DRAM % of peak"
    if metric not in before or metric not in after:
        return ""
    share = _of(after, metric)
    reached = "is reached" if share >= _NEAR else f"is not reached{_no_more(after)}"
    return (
        f"DRAM throughput rises from {_of(before, metric):.0f} % to {share:.0f} % of the "
        f"theoretical peak (article: 13 % to nearly 100 %); the goal {reached}; the scalar "
        f"kernel's share is {_of(before, metric) / ARTICLE_BEFORE[metric]:.1f} times the "
        "article's."
    )


def _no_more(after: Row) -> str:
    """Return why the memory gives no more than this, where a copy has no higher rate."""
    if "% of a copy" not in after or _of(after, "% of a copy") < _LIKE_A_COPY:
        return ""
    text = ", and cannot be, since a copy is no faster here"
    counted = after.get("DRAM bytes / bytes that had to move")
    if isinstance(counted, float) and counted < 1:
        text += f" ({1 - counted:.0%} of the bytes went uncounted, still in the L2 at the end)"
    return text


def _of_warps(before: Row, after: Row) -> str:
    metric = "warp execution efficiency %"
    if metric not in before or metric not in after:
        return ""
    was, is_now = _of(before, metric), _of(after, metric)
    if was >= ARTICLE_GOAL[metric]:
        return (
            f"Warp execution efficiency is {was:.1f} % already in the scalar kernel and "
            f"{is_now:.1f} % in the vector one: a ReLU without a branch has nothing to gain there"
            f"{_in_flight(before, after)}."
        )
    return (
        f"Warp execution efficiency rises from {was:.1f} % to {is_now:.1f} % (article: 78 to 95)."
    )


def _in_flight(before: Row, after: Row) -> str:
    metric = "KiB in flight an SM"
    if metric not in before or metric not in after:
        return ""
    return (
        f"; what differs is the data that an SM has on its way, {_of(before, metric):.0f} against "
        f"{_of(after, metric):.0f} KiB"
    )


def _of_use(before: Row, after: Row, used: Sequence[Row]) -> str:
    metric = "GPU utilisation %"
    if metric not in before or metric not in after:
        return ""
    waited = {str(r["implementation"]): _of(r, "GPU %") for r in used if r["MiB"] == 1}
    text = (
        f"GPU utilisation is {_of(before, metric):.0f} % before and {_of(after, metric):.0f} % "
        "after when launched without a gap"
    )
    if _of(before, metric) >= ARTICLE_GOAL[metric]:
        text += ", so it does not tell a slow kernel from a fast one"
    if waited:
        both = " and ".join(f"{waited[n]:.0f} %" for n in (BEFORE, AFTER) if n in waited)
        text += f"; small launches that are waited for show {both}: a low figure is the host's"
    return f"{text}."


def _of(row: Row, name: str) -> float:
    value = row[name]
    assert isinstance(value, (int, float))
    return float(value)


def drawing(facts: Mapping[str, Row]) -> Draw:
    """Return the picture: shares, then registers and threads, the article's beside ours."""
    from perftests.studies.pictures import LINES

    shares = ("GPU utilisation %", "DRAM % of peak", "warp execution efficiency %",
              "achieved occupancy %", "% of a copy")  # fmt: skip
    columns: tuple[tuple[str, Mapping[str, Any], str, str], ...] = (
        ("article, before", ARTICLE_BEFORE, "white", LINES[0]),
        ("article, goal", ARTICLE_GOAL, "white", LINES[1]),
        (f"{BEFORE}, before", facts[BEFORE], LINES[0], LINES[0]),
        (f"{AFTER}, after", facts[AFTER], LINES[1], LINES[1]),
    )

    def draw(figure: Any) -> None:
        parts = figure.subplots(1, 2, width_ratios=(2.4, 1))
        for axes, metrics in zip(parts, (shares, ("registers", "threads a block")), strict=True):
            for k, (name, known, face, edge) in enumerate(columns):
                at = [p + (k - 1.5) * 0.2 for p, m in enumerate(metrics) if m in known]
                heights = [float(known[m]) for m in metrics if m in known]
                bars = axes.bar(at, heights, 0.18, color=face, edgecolor=edge, label=name)
                axes.bar_label(bars, fmt="%.0f", fontsize=7)
            labels = [fill(m.removesuffix(" %"), 11) for m in metrics]
            axes.set_xticks(range(len(metrics)), labels)
        parts[0].set_ylabel("%")
        parts[0].set_title("What the profiler says of ReLU")
        parts[1].set_ylabel("number")
        parts[0].margins(y=0.25)
        parts[0].legend(ncols=2, fontsize=8, loc="upper left")

    return draw
