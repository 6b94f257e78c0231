"""What the study of copies makes of its times: rows, the verdict and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from kernels.cases import MIB
from perftests.studies.intervals import middle
from perftests.studies.movers import PAGEABLE, PINNED
from perftests.studies.pictures import LINES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftests.studies.tables import Row

IN, OUT, BOTH = "host_to_device", "device_to_host", "both_at_once"
UNITS = {
    "to device": "us", "to device at": "GB/s", "to host": "us", "to host at": "GB/s",
    "both at once": "us", "together at": "GB/s", "overlap": "%", "of the link": "%",
    "kernel's time": "us", "there and back": "us", "transfer takes": "x", "one way takes": "x",
    "time": "ms", "95 % from": "ms", "to": "ms", "sum of steps": "ms", "possible": "ms",
}  # fmt: skip


@dataclass(frozen=True)
class Copied:
    """Times of the copies of one size and kind of memory in seconds, by direction."""

    mib: int
    memory: str
    seconds: Mapping[str, Sequence[float]]
    wrong: str | None = None

    def median(self, direction: str) -> float:
        """Return the median of a direction."""
        return median(self.seconds[direction])

    @property
    def there_and_back(self) -> float:
        """A copy in and a copy out, one after the other."""
        return self.median(IN) + self.median(OUT)


def copy_rows(copied: Sequence[Copied], link: tuple[str, float] | None) -> list[Row]:
    """Return a row for each size and kind of memory."""
    rows: list[Row] = []
    for each in copied:
        moved = each.mib * MIB
        there, back, both = (each.median(way) for way in (IN, OUT, BOTH))
        row: Row = {
            "MiB": each.mib,
            "memory": each.memory,
            "to device": there,
            "to device at": moved / there,
            "to host": back,
            "to host at": moved / back,
            "both at once": both,
            "together at": 2 * moved / both,
            "overlap": (there + back - both) / min(there, back),
            "right": each.wrong is None,
        }
        if link is not None:
            row["of the link"] = moved / min(there, back) / link[1]
        rows.append(row)
    return rows


def kernel_rows(copied: Sequence[Copied], kernels: Mapping[tuple[str, int], float]) -> list[Row]:
    """Return a row for each kernel, size and kind of memory: how many kernels a transfer is."""
    return [
        {
            "kernel": kernel,
            "MiB": mib,
            "memory": each.memory,
            "kernel's time": seconds,
            "there and back": each.there_and_back,
            "transfer takes": each.there_and_back / seconds,
            "one way takes": each.median(IN) / seconds,
        }
        for (kernel, mib), seconds in kernels.items()
        for each in copied
        if each.mib == mib
    ]


def verdict(
    copies: Sequence[Row], beside: Sequence[Row], overlap: Sequence[Row], *, gpu: bool
) -> str:
    """Return the paragraph that the rows amount to."""
    wrong = [row for row in (*copies, *overlap) if not row["right"]]
    if wrong:
        return (
            f"Not judged: {len(wrong)} of {len(copies) + len(overlap)} ways of copying did not "
            "deliver the bytes that were sent."
        )
    ratios = [float(row["transfer takes"]) for row in beside]
    where = "at every size" if min(ratios) > 1 else "not everywhere"
    holds = "holds" if min(ratios) > 1 else "does not hold everywhere"
    dwarfed = sum(ratio >= 10 for ratio in ratios)
    text = (
        f"The claim {holds} here: a transfer there and back takes {min(ratios):.1f} to "
        f"{max(ratios):.0f} times the kernel that it feeds, more than the kernel {where} and ten "
        f"times it or more in {dwarfed} of {len(ratios)} rows."
    )
    if not gpu:
        text = (
            "There is no device here, so that the claim cannot be tested; copies from host to host "
            f"stand in. They take {min(ratios):.2f} to {max(ratios):.2f} times the kernel."
        )
    return " ".join([text, *_kinds(copies), _gained(overlap)]).strip()


def _kinds(copies: Sequence[Row]) -> list[str]:
    """Return what pinning brings at the largest size, and how far two directions overlap."""
    largest = max(int(row["MiB"]) for row in copies)
    by_memory = {str(row["memory"]): row for row in copies if row["MiB"] == largest}
    told = []
    if {PAGEABLE, PINNED} <= set(by_memory):
        slow, fast = by_memory[PAGEABLE], by_memory[PINNED]
        there, back = (float(slow[way]) / float(fast[way]) for way in ("to device", "to host"))
        told.append(
            f"At {largest} MiB pinned memory is {there:.1f} times as fast to the device and "
            f"{back:.1f} times to the host as pageable memory is."
        )
    for memory, row in by_memory.items():
        share = float(row["overlap"])
        told.append(
            f"Both directions at once {_hidden(share)} with {memory} memory at {largest} MiB."
        )
    return told


def _hidden(share: float) -> str:
    if share <= 0:
        return "do not overlap"
    if share > 1:
        return "overlap wholly, in less time than one alone (the host is unsteady),"
    return f"overlap by {share:.0%}"


def _gained(overlap: Sequence[Row]) -> str:
    if not overlap:
        return ""
    first, best = overlap[0], min(overlap, key=lambda row: float(row["time"]))
    if best is first:
        return "Chunks and streams gained nothing over one step after the other."
    longest = float(best["time"]) / float(best["possible"])
    return (
        f"Copy in, ReLU and copy out take {float(first['time']) * 1e3:.3g} ms ({first['way']}) and "
        f"{float(best['time']) * 1e3:.3g} ms ({best['way']}), {longest:.2f} times the longest of "
        "the three steps."
    )


def overlap_row(
    memory: str, chunks: int, seconds: Sequence[float], steps: Sequence[float], *, right: bool
) -> Row:
    """Return the row of one way; `steps` are the times of its steps alone."""
    took = middle(seconds)
    way = f"{memory}, in one piece" if chunks == 1 else f"{memory}, {chunks} chunks"
    return {
        "way": way,
        "time": took.median,
        "95 % from": took.low,
        "to": took.high,
        "sum of steps": sum(steps),
        "possible": max(steps),
        "overlap": (sum(steps) - took.median) / (sum(steps) - max(steps)),
        "right": right,
    }


def draw(figure: Any, copies: Sequence[Row], beside: Sequence[Row]) -> None:
    """Draw the rates by size, and how many kernels a transfer takes."""
    left, right = figure.subplots(1, 2)
    labels = [f"{row['MiB']} MiB\n{row['memory']}" for row in copies]
    ways = (("to device at", "host to device"), ("to host at", "device to host"))
    for index, (column, label) in enumerate((*ways, ("together at", "both at once, together"))):
        at = [place + (index - 1) * 0.27 for place in range(len(copies))]
        rates = [float(row[column]) / 1e9 for row in copies]
        left.bar(at, rates, 0.25, label=label, color=LINES[index + 1])
    left.set_xticks(range(len(copies)), labels, fontsize=7.5)
    left.set_title("Rate of the copies")
    left.set_ylabel("GB/s")
    left.set_ylim(0, left.get_ylim()[1] * 1.25)
    left.legend(loc="upper left")
    names = [f"{str(row['kernel']).split('_')[0]}\n{row['MiB']} MiB" for row in beside]
    memories = list(dict.fromkeys(str(row["memory"]) for row in beside))
    ticks = list(dict.fromkeys(names))
    for index, memory in enumerate(memories):
        rows = [row for row in beside if row["memory"] == memory]
        at = [place + (index - (len(memories) - 1) / 2) * 0.38 for place in range(len(rows))]
        ratios = [float(row["transfer takes"]) for row in rows]
        bars = right.bar(at, ratios, 0.36, label=memory, color=LINES[index + 4])
        right.bar_label(bars, fmt="%.3g", fontsize=8, padding=2)
    right.set_xticks(range(len(ticks)), ticks)
    right.set_yscale("log")
    right.axhline(1, color=LINES[0], linewidth=1)
    right.set_ylim(top=right.get_ylim()[1] * 2)
    right.set_title("Transfer there and back, in kernels")
    right.set_ylabel("times the kernel")
    right.legend(loc="upper left", ncols=2)
