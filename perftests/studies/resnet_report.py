"""What the study of ResNet-50 makes of its figures: rows, the verdict and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perftests.studies import resnet_energy
from perftests.studies.intervals import middle
from perftests.studies.pictures import LINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.studies.counter import Load
    from perftests.studies.resnet_loop import Busy
    from perftests.studies.tables import Row

STOCK = "stock"
PUBLISHED_S = (0.058, 0.041)
PUBLISHED_BUSY = (0.65, 0.92)
PUBLISHED_FLOP_PER_J = (1.2e12, 1.8e12)
HOST_BOUND = 1.2
"""An iteration this much longer than its launches waits for the host."""
_V100_FLOP_PER_J = 125e12 / 300
"""NVIDIA's data sheet of the V100 SXM2: 125 TFLOP/s of tensor cores in 300 W. 900 GB/s is its."""
_TENSOR_FLOP_PER_S = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "V100": 125e12}
"""Dense fp16 by tensor cores, from NVIDIA's data sheets of the SXM boards."""


@dataclass(frozen=True)
class Measured:
    """What was found of one way to run the model. Without `seconds`, `why` says what failed.

    `gpu_s` is the median through the chain of trust, `of_bound` the worst error over its bound;
    without `load`, `no_load` may say why its joules were not counted.
    """

    name: str
    seconds: Sequence[float] = ()
    first_s: float | None = None
    gpu_s: float | None = None
    of_bound: float | None = None
    busy: Busy | None = None
    load: Load | None = None
    no_load: str | None = None
    why: str | None = None

    @property
    def iteration_s(self) -> float:
        """The median of the iterations."""
        return middle(self.seconds).median


def rows(found: Sequence[Measured], images: int, flop: int) -> list[Row]:
    """Return a row for each way that ran. `flop` is that of an iteration of `images` images."""
    ran = [each for each in found if each.seconds]
    stock = next((each.iteration_s for each in ran if each.name == STOCK), None)
    return [_row(each, images, flop, stock) for each in ran]


def _row(each: Measured, images: int, flop: int, stock_s: float | None) -> Row:
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
    if each.of_bound is not None:
        row["worst error of bound"] = each.of_bound
    if each.first_s is not None:
        row["first call"] = each.first_s
    if each.no_load is not None:
        row["energy"] = f"not measured: {each.no_load}"
    return row


def published_rows(
    ways: Sequence[Row], energies: Sequence[Row], model: str, limit_w: float | None
) -> list[Row]:
    """Return the published figures beside those of stock torch and of the fastest way."""
    joules = {str(row["way"]): row for row in energies}
    stock, best = (way | joules.get(str(way["way"]), {}) for way in (_stock(ways), fastest(ways)))
    found: list[Row] = [
        _beside("iteration (ms)", [s * 1e3 for s in PUBLISHED_S], stock, best, "iteration", 1e3),
        _beside("GPU busy (%)", [b * 100 for b in PUBLISHED_BUSY], stock, best, "GPU busy", 100),
    ]
    for kind, name in (("whole board", resnet_energy.WHOLE), ("above idle", resnet_energy.ABOVE)):
        quantity, published = f"TFLOP/s a watt, {kind}", [f / 1e12 for f in PUBLISHED_FLOP_PER_J]
        found.append(_beside(quantity, published, stock, best, name, 1e-3))
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


def verdict(
    ways: Sequence[Row], energies: Sequence[Row], failed: Sequence[Measured], *, gpu: bool
) -> str:
    """Return the paragraph that the rows amount to."""
    if not any(way["way"] == STOCK for way in ways):
        return "Not judged: the stock model was not measured, so that nothing can be compared."
    stock, best = _stock(ways), fastest(ways)
    saved = 1 - float(best["iteration"]) / float(stock["iteration"])
    wanted = 1 - PUBLISHED_S[1] / PUBLISHED_S[0]
    told = [_told_times(stock, best, saved, wanted)]
    if gpu:
        gain = resnet_energy.gain(energies, str(stock["way"]), str(best["way"]))
        told.insert(0, _told_claim(saved, wanted, gain))
        told += _told_busy(stock, best)
        told += resnet_energy.told(energies, str(stock["way"]), str(best["way"]))
        told += [_TOLD_PUBLISHED, *_told_fused(ways)]
    else:
        told.insert(0, "There is no GPU here, so that the claim cannot be tested.")
    errors = [float(way["worst error of bound"]) for way in ways if "worst error of bound" in way]
    if errors:
        told.append(
            f"All outputs agree with fp32 within the bound, the worst at {max(errors):.2f} of it."
        )
    told += [f"{each.name} was not measured: {each.why}." for each in failed]
    return " ".join(told)


def _told_claim(saved: float, wanted: float, gain: float | None) -> str:
    """Return what becomes of the claim; `gain` is the efficiency's ratio, None if unknown."""
    if saved <= 0:
        return "The claim does not hold here."
    if saved < wanted:
        return "The claim holds in part here."
    if gain is None or gain >= PUBLISHED_FLOP_PER_J[1] / PUBLISHED_FLOP_PER_J[0]:
        return "The claim holds here."
    return "The claim holds in part here: in time, not in efficiency."


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


_TOLD_PUBLISHED = (
    f"The published 1.2 to 1.8 TFLOP/s a watt are more than the {_V100_FLOP_PER_J / 1e12:.2f} "
    "that the data sheet of a V100, whose 900 GB/s the article names, allows: they cannot be "
    "FLOP of this model over the power of that board."
)


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


def draw(figure: Any, ways: Sequence[Row], energies: Sequence[Row]) -> None:
    """Draw the iterations' times and busy share, and efficiency where it was measured."""
    axes = figure.subplots(1, 2 if energies else 1, squeeze=False, sharey=True)[0]
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
    axes[0].set_xlabel("ms an iteration; lines: 95 % interval of the median")
    axes[0].set_title("Iteration")
    if energies:
        resnet_energy.draw(axes[1], energies, names)


UNITS = {
    "iteration": "ms", "95 % from": "ms", "to": "ms", "rate": "TFLOP/s", "over stock": "x",
    "launches alone": "ms", "GPU busy": "%", "first call": "s",
}  # fmt: skip
