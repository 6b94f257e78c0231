"""What the study of several GPUs makes of its figures: rows, the verdict and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any

from perftests.studies.intervals import middle
from perftests.studies.pictures import INK, LINES, MARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.studies.tables import Row
    from perftests.studies.topology import Pair

EFFICIENT = 0.8
"""From this efficiency on all devices count as being at work at once."""
RESIDENT, SCATTERED = "resident", "scatter_gather"


@dataclass(frozen=True)
class Sharded:
    """Times in seconds of one number of devices: data resident, and scattered and gathered.

    With one device there is nothing to scatter. `wrong` counts wrong elements.
    """

    devices: int
    resident: Sequence[float]
    scattered: Sequence[float] = ()
    scatter: Sequence[float] = ()
    gather: Sequence[float] = ()
    wrong: int = 0


def scaling_rows(found: Sequence[Sharded], nbytes: int) -> list[Row]:
    """Return a row for each number of devices and way. `nbytes` are those of the whole tensor."""
    one_s = median(next(each for each in found if each.devices == 1).resident)
    rows: list[Row] = []
    for each in found:
        rows.append(_row(each, RESIDENT, each.resident, one_s, nbytes))
        if each.scattered:
            row = _row(each, SCATTERED, each.scattered, one_s, nbytes)
            scatter, gather = median(each.scatter), median(each.gather)
            row.update({"scatter": scatter, "gather": gather})
            saved = one_s - median(each.resident)
            if saved > 0:
                row["pays after"] = (scatter + gather) / saved
            rows.append(row)
    return rows


def _row(each: Sharded, way: str, seconds: Sequence[float], one_s: float, nbytes: int) -> Row:
    took = middle(seconds)
    return {
        "devices": each.devices,
        "data": way,
        "time": took.median,
        "95 % from": took.low,
        "to": took.high,
        "together": 2 * nbytes / took.median,
        "speed-up": one_s / took.median,
        "efficiency": one_s / took.median / each.devices,
        "right": each.wrong == 0,
    }


def pair_rows(found: Sequence[Pair]) -> list[Row]:
    """Return a row for each ordered pair of GPUs."""
    rows: list[Row] = []
    for pair in found:
        row: Row = {
            "from": pair.source,
            "to": pair.target,
            "nvidia-smi": pair.link,
            "torch: peer access": pair.peer_access,
            "NVML": pair.nvml_says,
            "pattern arrived": pair.wrong == 0,
            "copy": pair.rate,
            "both directions": pair.both,
        }
        if pair.read_wrong is None or pair.read_rate is None:
            row["kernel reads peer"] = f"not tried: {pair.unread}"
        else:
            row["kernel reads peer"] = pair.read_wrong == 0
            row["kernel's read"] = pair.read_rate
        rows.append(row)
    return rows


def verdict(scaling: Sequence[Row], pairs: Sequence[Row], *, gpus: int) -> str:
    """Return the paragraph that the rows amount to. `gpus` is 0 on a CPU."""
    if not all(row["right"] for row in scaling):
        return "Not judged: a sharded ReLU gave wrong elements."
    most = max(int(row["devices"]) for row in scaling)
    if gpus == 1:
        row = scaling[0]
        return (
            "Not tested: there is one GPU here, so that there is nothing to scale to. It takes "
            f"{float(row['time']) * 1e3:.3g} ms for the tensor that several would share."
        )
    best = {
        str(row["data"]): row for row in scaling if row["devices"] == most and "efficiency" in row
    }
    told = []
    if gpus == 0:
        told.append("There is no GPU here, so that the claim cannot be tested; threads stand in.")
    told.append(_told_resident(best[RESIDENT], most, gpus))
    if SCATTERED in best:
        told.append(_told_scattered(best[SCATTERED]))
    return " ".join([*told, *_told_pairs(pairs)])


def _told_resident(row: Row, most: int, gpus: int) -> str:
    efficiency = float(row["efficiency"])
    things = "GPUs" if gpus else "threads"
    text = (
        f"{most} {things} are {float(row['speed-up']):.2f} times as fast as one, an efficiency of "
        f"{efficiency:.0%}."
    )
    if not gpus:
        return text
    holds = "holds" if efficiency >= EFFICIENT else "does not hold even"
    return f"The claim {holds} for resident data: {text}"


def _told_scattered(row: Row) -> str:
    faster = float(row["speed-up"])
    word = "faster" if faster > 1 else "slower"
    text = (
        f"A tensor that has to be scattered and gathered is {max(faster, 1 / faster):.1f} times "
        f"{word} than on one device"
    )
    if "pays after" in row:
        text += f"; it pays after {ceil(float(row['pays after']))} such kernels on the shards"
    return f"{text}."


def _told_pairs(pairs: Sequence[Row]) -> list[str]:
    """Return whether what the system reports of peer access is what was proved."""
    if not pairs:
        return []
    lost = [row for row in pairs if not row["pattern arrived"]]
    if lost:
        return [f"A pattern did not arrive between {lost[0]['from']} and {lost[0]['to']}."]
    rates = [float(row["copy"]) / 1e9 for row in pairs]
    access = [row for row in pairs if row["torch: peer access"]]
    read = [row for row in access if row["kernel reads peer"] is True]
    text = (
        f"Peer access is reported for {len(access)} of {len(pairs)} ordered pairs and proved by a "
        f"kernel that reads the peer's memory for {len(read)}; every pattern arrived, at "
        f"{min(rates):.0f} to {max(rates):.0f} GB/s."
    )
    return [text]


def draw(figure: Any, scaling: Sequence[Row], pairs: Sequence[Row]) -> None:
    """Draw the speed-up over devices, and the rates between pairs where there are any."""
    axes = figure.subplots(1, 2 if pairs else 1, squeeze=False)[0]
    most = max(int(row["devices"]) for row in scaling)
    axes[0].plot([1, most], [1, most], color=LINES[0], linewidth=1, linestyle="--", label="ideal")
    for index, (way, label) in enumerate(
        ((RESIDENT, "data resident"), (SCATTERED, "scatter, compute, gather"))
    ):
        rows = [row for row in scaling if row["data"] == way]
        if rows:
            axes[0].plot(
                [int(row["devices"]) for row in rows], [float(row["speed-up"]) for row in rows],
                marker=MARKS[index + 1], color=LINES[index + 1], label=label,
            )  # fmt: skip
    axes[0].set_xticks(sorted({int(row["devices"]) for row in scaling}))
    axes[0].set_ylim(bottom=0)
    axes[0].set_xlabel("devices")
    axes[0].set_ylabel("times as fast as one")
    axes[0].set_title("Sharded ReLU")
    axes[0].legend(loc="upper left")
    if pairs:
        _draw_pairs(axes[1], pairs)


def _draw_pairs(axes: Any, pairs: Sequence[Row]) -> None:
    """Draw the copy's rate of each ordered pair as a matrix."""
    count = 1 + max(int(row["from"]) for row in pairs)
    cells = [[float("nan")] * count for _ in range(count)]
    for row in pairs:
        cells[int(row["from"])][int(row["to"])] = float(row["copy"]) / 1e9
    axes.imshow(cells, cmap="Blues", vmin=0, vmax=2.5 * max(float(r["copy"]) / 1e9 for r in pairs))
    for row in pairs:
        place = int(row["to"]), int(row["from"])
        axes.text(*place, f"{float(row['copy']) / 1e9:.0f}", ha="center", va="center", color=INK)
    axes.set_xticks(range(count))
    axes.set_yticks(range(count))
    axes.grid(visible=False)
    axes.set_xlabel("to GPU")
    axes.set_ylabel("from GPU")
    axes.set_title("Copy between GPUs, GB/s")


UNITS = {
    "time": "ms", "95 % from": "ms", "to": "ms", "together": "GB/s", "speed-up": "x",
    "efficiency": "%", "scatter": "ms", "gather": "ms",
}  # fmt: skip
PAIR_UNITS = {"copy": "GB/s", "both directions": "GB/s", "kernel's read": "GB/s"}
