"""What the study of ResNet-50 makes of its figures: rows, the verdict and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perftests.studies.intervals import middle
from perftests.studies.pictures import LINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.harness.energy import Power
    from perftests.studies.resnet_loop import Busy, Load
    from perftests.studies.tables import Row

STOCK = "stock"
PUBLISHED_S = (0.058, 0.041)
PUBLISHED_BUSY = (0.65, 0.92)
PUBLISHED_FLOP_PER_J = (1.2e12, 1.8e12)
HOST_BOUND = 1.2
"""An iteration this much longer than its launches waits for the host."""
LEAST_PACE = 0.95
"""While the energy counter is read iterations keep this pace, or the device has waited."""
_V100_FLOP_PER_J = 125e12 / 300
"""NVIDIA's data sheet of the V100 SXM2: 125 TFLOP/s of tensor cores in 300 W. 900 GB/s is its."""
_OF_ENERGY = ("GFLOP/J", "+-", "GFLOP/J above idle")
_TENSOR_FLOP_PER_S = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "V100": 125e12}
"""Dense fp16 by tensor cores, from NVIDIA's data sheets of the SXM boards."""


@dataclass(frozen=True)
class Measured:
    """What was found of one way to run the model. Without `seconds`, `why` says what failed.

    `gpu_s` is the median through the chain of trust, `of_bound` the worst error over its bound.
    """

    name: str
    seconds: Sequence[float] = ()
    first_s: float | None = None
    gpu_s: float | None = None
    of_bound: float | None = None
    busy: Busy | None = None
    load: Load | None = None
    why: str | None = None

    @property
    def iteration_s(self) -> float:
        """The median of the iterations."""
        return middle(self.seconds).median


def rows(found: Sequence[Measured], images: int, flop: int, idle: Power | None) -> list[Row]:
    """Return a row for each way that ran. `flop` is that of an iteration of `images` images."""
    ran = [each for each in found if each.seconds]
    stock = next((each.iteration_s for each in ran if each.name == STOCK), None)
    return [_row(each, images, flop, idle, stock) for each in ran]


def _row(each: Measured, images: int, flop: int, idle: Power | None, stock_s: float | None) -> Row:
    took = middle(each.seconds)
    row: Row = {
        "way": each.name,
        "iteration": took.median,
        "95 % from": took.low,
        "to": took.high,
        "images/s": images / took.median,
        "rate": flop / took.median,
    }
    if stock_s is not None:
        row["over stock"] = stock_s / took.median
    if each.gpu_s is not None:
        row["launches alone"] = each.gpu_s
    if each.busy is not None:
        row["GPU busy"] = each.busy.seconds / took.median
        row["launches"] = each.busy.launches
    if each.load is not None:
        row.update(_power(each.load, flop, idle, took.median))
    if each.of_bound is not None:
        row["worst error of bound"] = each.of_bound
    if each.first_s is not None:
        row["first call"] = each.first_s
    return row


def _power(load: Load, flop: int, idle: Power | None, iteration_s: float) -> Row:
    """Return power and FLOP a joule, of the whole board and of what it draws above idling."""
    watts = load.power.watts
    row: Row = {"power": watts, "pace": load.per_s * iteration_s}
    row["GFLOP/J"] = flop * load.per_s / watts / 1e9
    row["+-"] = float(row["GFLOP/J"]) * load.power.error_w / watts
    if idle is not None and watts > idle.watts:
        row["GFLOP/J above idle"] = flop * load.per_s / (watts - idle.watts) / 1e9
    if load.utilisation is not None:
        row["NVML utilisation"] = load.utilisation
    return at_pace(row)


def at_pace(row: Row) -> Row:
    """Return a row without its energy where the device waited: idle power would count as work's."""
    if float(row.get("pace", 1.0)) >= LEAST_PACE:
        return row
    return {key: value for key, value in row.items() if key not in _OF_ENERGY}


def published_rows(ways: Sequence[Row], model: str, limit_w: float | None) -> list[Row]:
    """Return the published figures beside those of stock torch and of the fastest way."""
    stock, best = _stock(ways), fastest(ways)
    found: list[Row] = [
        _beside("iteration (ms)", [s * 1e3 for s in PUBLISHED_S], stock, best, "iteration", 1e3),
        _beside("GPU busy (%)", [b * 100 for b in PUBLISHED_BUSY], stock, best, "GPU busy", 100),
        _beside(
            "TFLOP/s a watt", [f / 1e12 for f in PUBLISHED_FLOP_PER_J], stock, best, "GFLOP/J", 1e-3
        ),
    ]
    peak = next((rate for name, rate in _TENSOR_FLOP_PER_S.items() if name in model), None)
    if peak is not None and limit_w:
        found.append(
            {
                "quantity": "TFLOP/s a watt that the data sheet allows",
                "published before": _V100_FLOP_PER_J / 1e12,
                "published after": _V100_FLOP_PER_J / 1e12,
                "stock": peak / limit_w / 1e12,
                "fastest": peak / limit_w / 1e12,
            }
        )
    return found


def _beside(
    quantity: str, published: Sequence[float], stock: Row, best: Row, name: str, factor: float
) -> Row:
    row: Row = {
        "quantity": quantity,
        "published before": published[0],
        "published after": published[1],
    }
    for column, way in (("stock", stock), ("fastest", best)):
        if name in way:
            row[column] = float(way[name]) * factor
    return row


def _stock(ways: Sequence[Row]) -> Row:
    return next((way for way in ways if way["way"] == STOCK), ways[0])


def fastest(ways: Sequence[Row]) -> Row:
    """Return the row of the shortest iteration."""
    return min(ways, key=lambda way: float(way["iteration"]))


def verdict(ways: Sequence[Row], failed: Sequence[Measured], *, gpu: bool) -> str:
    """Return the paragraph that the rows amount to."""
    if not any(way["way"] == STOCK for way in ways):
        return "Not judged: the stock model was not measured, so that nothing can be compared."
    stock, best = _stock(ways), fastest(ways)
    saved = 1 - float(best["iteration"]) / float(stock["iteration"])
    wanted = 1 - PUBLISHED_S[1] / PUBLISHED_S[0]
    told = [_told_times(stock, best, saved, wanted)]
    if gpu:
        held = "holds" if saved >= wanted else "holds in part" if saved > 0 else "does not hold"
        told.insert(0, f"The claim {held} here.")
        told += [*_told_busy(stock, best), *_told_power(stock, best), *_told_fused(ways)]
    else:
        told.insert(0, "There is no GPU here, so that the claim cannot be tested.")
    errors = [float(way["worst error of bound"]) for way in ways if "worst error of bound" in way]
    if errors:
        told.append(
            f"All outputs agree with fp32 within the bound, the worst at {max(errors):.2f} of it."
        )
    told += [f"{each.name} was not measured: {each.why}." for each in failed]
    return " ".join(told)


def _told_times(stock: Row, best: Row, saved: float, wanted: float) -> str:
    before, after = (float(way["iteration"]) * 1e3 for way in (stock, best))
    if best is stock:
        return f"No way is faster than stock torch's {before:.3g} ms an iteration."
    return (
        f"The fastest way, {best['way']}, takes {after:.3g} ms an iteration against {before:.3g} "
        f"ms of stock torch, {saved:.0%} less; published are {wanted:.0%} less."
    )


def _told_busy(stock: Row, best: Row) -> list[str]:
    if "GPU busy" not in stock or "GPU busy" not in best:
        return []
    before, after = float(stock["GPU busy"]), float(best["GPU busy"])
    start = (
        "Utilisation has no room to rise as published (65 to 92 %)"
        if before >= PUBLISHED_BUSY[1]
        else "Utilisation starts below the published end of 92 %"
    )
    return [
        f"{start}: a kernel runs in {before:.0%} of stock torch's time and in {after:.0%} then."
    ]


def _told_power(stock: Row, best: Row) -> list[str]:
    text = (
        f"The published 1.2 to 1.8 TFLOP/s a watt are more than the {_V100_FLOP_PER_J / 1e12:.2f} "
        "that the data sheet of a V100, whose 900 GB/s the article names, allows: they cannot be "
        "FLOP of this model over the power of that board."
    )
    if "GFLOP/J" in stock and "GFLOP/J" in best:
        before, after = (float(way["GFLOP/J"]) for way in (stock, best))
        found = (
            f"Efficiency goes from {before / 1e3:.3g} to {after / 1e3:.3g} TFLOP/s a watt "
            f"({after / before - 1:+.0%}; published +50 %)."
        )
        return [found, text]
    paces = [float(way["pace"]) for way in (stock, best) if "pace" in way]
    if not paces:
        return [text]
    found = (
        "Efficiency is not told: while the energy counter was read the device waited for the host, "
        f"at {' and '.join(f'{pace:.0%}' for pace in paces)} of the pace of the iterations alone."
    )
    return [found, text]


def _told_fused(ways: Sequence[Row]) -> list[str]:
    """Return what our kernels bring over stock torch and over torch.compile, and by themselves."""
    by_name = {str(way["way"]): float(way["iteration"]) for way in ways}
    fused = {name: s for name, s in by_name.items() if name.startswith(("fused", "folded"))}
    if not fused:
        return []
    name = min(fused, key=lambda way: fused[way])
    text = (
        f"Of the ways with our kernels {name} is the fastest, {by_name[STOCK] / fused[name]:.2f} "
    )
    text += "times as fast as stock torch"
    if "torch.compile" in by_name:
        text += f" and {by_name['torch.compile'] / fused[name]:.2f} times as torch.compile"
    return [f"{text}.", *_told_alone(ways)]


def _told_alone(ways: Sequence[Row]) -> list[str]:
    """Return what the fused launches save by themselves, and what the host makes of them."""
    by_name = {str(way["way"]): way for way in ways if "launches alone" in way}
    stock, fused = by_name.get(STOCK), by_name.get("fused")
    if stock is None or fused is None:
        return []
    before, after = (float(way["launches alone"]) * 1e3 for way in (stock, fused))
    text = (
        f"Fusing alone, the host's latency hidden, takes the launches from {before:.3g} to "
        f"{after:.3g} ms ({after / before - 1:+.0%})"
    )
    took = float(fused["iteration"]) * 1e3
    if took > HOST_BOUND * after:
        text += f", but launched one by one the fused form takes {took:.3g} ms: the host is slower"
    return [f"{text}."]


def told_few(ways: Sequence[Row], images: int) -> str:
    """Return what a small batch shows of utilisation, nothing where it was not measured."""
    known = [way for way in ways if "GPU busy" in way]
    if not any(way["way"] == STOCK for way in known):
        return ""
    stock, best = _stock(known), fastest(known)
    before, after = float(stock["GPU busy"]), float(best["GPU busy"])
    faster = float(stock["iteration"]) / float(best["iteration"])
    return (
        f" With {images} images a kernel runs in {before:.0%} of stock torch's time; the fastest "
        f"way there, {best['way']}, reaches {after:.0%} and is {faster:.2f} times as fast."
    )


def draw(figure: Any, ways: Sequence[Row]) -> None:
    """Draw the iterations' times, and busy share and efficiency where they were measured."""
    powered = [way for way in ways if "GFLOP/J" in way]
    axes = figure.subplots(1, 2 if powered else 1, squeeze=False, sharey=True)[0]
    names = [str(way["way"]) for way in ways]
    places = range(len(ways))
    times = [float(way["iteration"]) * 1e3 for way in ways]
    below = [(float(way["iteration"]) - float(way["95 % from"])) * 1e3 for way in ways]
    above = [(float(way["to"]) - float(way["iteration"])) * 1e3 for way in ways]
    bars = axes[0].barh(
        places, times, 0.6, xerr=[below, above], color=LINES[1], error_kw={"ecolor": LINES[0]}
    )
    labels = [
        f"{took:.2f}" + (f"   GPU busy {float(way['GPU busy']):.0%}" if "GPU busy" in way else "")
        for took, way in zip(times, ways, strict=True)
    ]
    axes[0].bar_label(bars, labels, padding=4, fontsize=8.5)
    axes[0].set_xlim(0, max(times) * 1.7)
    axes[0].set_yticks(places, names)
    axes[0].invert_yaxis()
    axes[0].grid(visible=False, axis="y")
    axes[0].set_xlabel("ms an iteration")
    axes[0].set_title("Iteration")
    if powered:
        _draw_power(axes[1], ways)


def _draw_power(axes: Any, ways: Sequence[Row]) -> None:
    efficiency = [float(way.get("GFLOP/J", 0.0)) for way in ways]
    errors = [float(way.get("+-", 0.0)) for way in ways]
    bars = axes.barh(
        range(len(ways)),
        efficiency,
        0.6,
        xerr=errors,
        color=LINES[3],
        error_kw={"ecolor": LINES[0]},
    )
    told = [f"{float(way['GFLOP/J']):.0f}" if "GFLOP/J" in way else "not told" for way in ways]
    axes.bar_label(bars, told, padding=4, fontsize=8.5)
    axes.set_xlim(0, max(efficiency) * 1.2)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("GFLOP/s a watt, whole board")
    axes.set_title("Efficiency")


UNITS = {
    "iteration": "ms", "95 % from": "ms", "to": "ms", "rate": "TFLOP/s", "over stock": "x",
    "launches alone": "ms", "GPU busy": "%", "power": "W", "pace": "%", "NVML utilisation": "%",
    "first call": "s",
}  # fmt: skip
