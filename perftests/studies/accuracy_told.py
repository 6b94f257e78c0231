"""What the accuracy study's rows say of the claim, in words and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perftests.studies.accuracy_forms import FAST_MATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftests.studies.frame import Draw
    from perftests.studies.tables import Row

_LOSS = 1.1
"""From this ratio of the largest errors on a form counts as less accurate."""
_ROUNDING = {"float16": 2**-11 / 2**-24, "bfloat16": 2**-8 / 2**-24}
"""Half a unit in the last place of 1, in units of 2^-24."""
_BOUND_BY_MEMORY = 0.9
_SAME_TIME = 0.0005
_FREE = 0.05
"""Up to this gain in time a form counts as no faster."""


def verdict(images_rows: Sequence[Row], near_rows: Sequence[Row], times: Sequence[Row]) -> str:
    """Return what the rows say of folding, fast math and half types."""
    return " ".join(
        text
        for text in (
            _of_folding(images_rows, near_rows),
            _of_folded_time(times),
            _of_fast_math(images_rows, times),
            _of_halves(images_rows),
            _of_narrow_times(times),
        )
        if text
    )


def _find(rows: Iterable[Row], **wanted: Any) -> Row | None:
    """Return the first row that has what is wanted; `_` in a name stands for a blank."""
    told = {name.replace("_", " "): value for name, value in wanted.items()}
    return next((r for r in rows if all(r.get(k) == v for k, v in told.items())), None)


def _fp32(rows: Sequence[Row], form: str, *, fast: bool = False) -> Row | None:
    return _find(rows, form=form, x="float32", y="float32", fast_math=fast)


def _of_folding(rows: Sequence[Row], near_rows: Sequence[Row]) -> str:
    pairs = [(_fp32(r, "divided"), _fp32(r, "folded")) for r in (rows, near_rows)]
    (divided, folded), (near_divided, near_folded) = pairs
    if divided is None or folded is None or near_divided is None or near_folded is None:
        return "Folding was not measured."
    ratio = _number(folded, "max error") / _number(divided, "max error")
    near = _number(near_folded, "max error") / _number(near_divided, "max error")
    loses = max(ratio, near) > _LOSS
    start = "Folding loses accuracy" if loses else "Folding does not lose accuracy"
    within = max(_number(folded, "of bound"), _number(near_folded, "of bound"))
    return (
        f"{start} in fp32: its largest error is {_number(folded, 'max error'):.2f} units of 2^-24 "
        f"of the operands' magnitude, {ratio:.1f} times that of dividing, and {near:.1f} times as "
        f"large close to the mean ({_number(near_folded, 'median ULP'):.0f} ULP in the median "
        f"against {_number(near_divided, 'median ULP'):.0f})"
        f"{', where a subtraction is exact and a bias was rounded' if near > _LOSS else ''}; "
        f"{'it stays' if within <= 1 else 'it does not stay'} within the bound ({within:.2f} of "
        "it)."
    )


def _of_folded_time(times: Sequence[Row]) -> str:
    divided, folded = _fp32(times, "divided"), _fp32(times, "folded")
    if divided is None or folded is None:
        return ""
    change = _number(divided, "time") / _number(folded, "time") - 1
    way = "faster" if change >= 0 else "slower"
    why = ": what folding gains elsewhere is passes over memory, not arithmetic"
    told = f"In a kernel of one pass folding is {abs(change):.1%} {way} than dividing"
    return f"{told}{why if change < _FREE else ''}."


def _of_fast_math(rows: Sequence[Row], times: Sequence[Row]) -> str:
    if not any(row["fast math"] for row in rows):
        return f"{FAST_MATH} did not run here: it is an option of the GPU's compiler."
    told = []
    for form in ("divided", "folded"):
        plain, fast = _fp32(rows, form), _fp32(rows, form, fast=True)
        if plain is None or fast is None:
            continue
        more = _number(fast, "max error") / _number(plain, "max error")
        text = f"the {form} form's largest error is {more:.2f} times what it was"
        before, after = _fp32(times, form), _fp32(times, form, fast=True)
        if before is not None and after is not None:
            change = _number(after, "time") / _number(before, "time") - 1
            way = "less" if change < 0 else "more"
            same = abs(change) < _SAME_TIME
            text += ", its time the same" if same else f", its time {abs(change):.1%} {way}"
        told.append(text)
    return f"With {FAST_MATH} {'; '.join(told)}." if told else ""


def _of_halves(rows: Sequence[Row]) -> str:
    told = []
    for half in ("float16", "bfloat16"):
        wide = _find(rows, form="folded", x=half, y=half, arithmetic="float32")
        narrow = _find(rows, form="folded", x=half, y=half, arithmetic=half)
        if wide is None or narrow is None:
            continue
        more = _number(narrow, "max error") / _number(wide, "max error")
        told.append(
            f"{half} costs {_number(wide, 'max error'):.0f} units when only x and y are narrow "
            f"(one rounding of y, which is {_ROUNDING[half]:.0f} at most{_own_rounding(wide)}) and "
            f"{more:.1f} times that when the arithmetic is narrow too"
        )
    return f"{'; '.join(told)}." if told else ""


def _of_narrow_times(times: Sequence[Row]) -> str:
    """Return that half the bytes do not help where all narrow forms take one and the same time."""
    narrow = [row for row in times if row["x"] != "float32" and "of copy" in row]
    if not narrow:
        return ""
    least, most = (f(_number(row, "time") for row in narrow) for f in (min, max))
    shares = [_number(row, "of copy") for row in narrow]
    if most > least * (1 + _FREE) or max(shares) > _BOUND_BY_MEMORY:
        return ""
    return (
        f"Times of narrow types tell no price: all take {least * 1e6:.1f} to {most * 1e6:.1f} us, "
        f"{min(shares):.0%} to {max(shares):.0%} of a copy's rate, since with a thread a pixel "
        "threads are the limit there and not memory."
    )


def _own_rounding(row: Row) -> str:
    """Return what the rounding of x adds, where it was measured."""
    name = "max error, x's own rounding too"
    return f"; {_number(row, name):.0f} with that of x" if name in row else ""


def _number(row: Row, name: str) -> float:
    value = row[name]
    assert isinstance(value, (int, float))
    return float(value)


def drawing(rows: Sequence[Row], near_rows: Sequence[Row], times: Sequence[Row]) -> Draw:
    """Return the picture: errors by form and kind of images, and the rates beside them."""
    from perftests.studies.pictures import INK, LINES

    def draw(figure: Any) -> None:
        errors_axes, times_axes = figure.subplots(1, 2, width_ratios=(3, 1.4), sharey=True)
        labels = [_label(row) for row in rows]
        at = range(len(rows))
        for name, found, colour, mark in (
            ("random images", rows, LINES[1], "o"),
            ("close to the mean", near_rows, LINES[2], "s"),
        ):
            most = [_number(row, "max error") for row in found]
            errors_axes.plot(most, at, mark, color=colour, label=f"{name}: largest")
            mean = [_number(row, "mean error") for row in found]
            errors_axes.plot(
                mean, at, mark, color=colour, markerfacecolor="white", label=f"{name}: mean"
            )
        errors_axes.set_xscale("log")
        errors_axes.set_yticks(list(at), labels)
        errors_axes.invert_yaxis()
        errors_axes.set_xlabel("error / operands' magnitude, units of 2$^{-24}$")
        errors_axes.legend(loc="upper right", fontsize=8)
        timed = {_label(row): row for row in times}
        shown = [(k, timed[label]) for k, label in enumerate(labels) if label in timed]
        times_axes.barh(
            [k for k, _ in shown],
            [_number(row, "rate") / 1e9 for _, row in shown],
            height=0.6,
            color=[LINES[3] if row["fast math"] else LINES[0] for _, row in shown],
        )
        times_axes.set_xlabel("GB/s (green: fast math)", color=INK)

    return draw


def _label(row: Row) -> str:
    types = str(row["x"]) if row["x"] == row["y"] else f"{row['x']} to {row['y']}"
    narrow = f", {row['arithmetic']} arithmetic" if row["arithmetic"] != "float32" else ""
    return f"{row['form']}, {types}{narrow}{', fast math' if row['fast math'] else ''}"
