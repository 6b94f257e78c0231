"""The roofline study: its data, its kernel, a CPU's small run, and its verdict both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from matplotlib.figure import Figure

from perftests.studies import frame, roofline
from perftests.studies.roofline_curve import A, B, chain
from perftests.studies.roofline_verdict import draw, shares, verdict

if TYPE_CHECKING:
    from perftests.studies.tables import Row

OVER: list[Row] = [
    {"roof": "theoretical", "bandwidth": 5e12, "fp32": 60e12, "ridge": 12.0},
    {"roof": "measured", "bandwidth": 4e12, "fp32": 50e12, "ridge": 12.5},
]
GPUS = roofline.articles()[0].rows


def kernel(intensity: float, share: float, name: str = "relu") -> Row:
    return {
        "kernel": name, "dtype": "float32", "implementation": "cuda_vector",
        "intensity": intensity, "FLOP rate": share * intensity * 4e12,
        "attainable": intensity * 4e12, "of attainable": share,
    }  # fmt: skip


def step(intensity: float, of_copy: float) -> Row:
    return {"intensity": intensity, "of copy": of_copy, "FLOP rate": intensity * of_copy * 4e12}


def test_kernels_left_of_the_ridge_at_their_roof_hold_the_claim() -> None:
    traced = [step(0.25, 1.0), step(8, 0.96), step(32, 0.4)]
    text = verdict(OVER, [kernel(0.125, 0.99), kernel(0.75, 1.01, "fused_transform")], traced, GPUS)
    assert "bound by memory holds here: the ridge is at 12.0 (theoretical), 12.5 (measured)" in text
    assert "fused_transform float32, has 0.75, left of it" in text
    assert "reach 99% to 101%" in text
    assert "none below 90%. More than all of it is no error" in text
    assert "holds to 95% up to 8 FLOP a byte; the measured ridge is at 12.5" in text
    assert "its corner is sharp: at 8 FLOP a byte, the measured point next to" in text
    assert "the ridge, 96% of the roof is reached." in text
    traced.append(step(16, 0.5))  # 32 of 50 TFLOP/s
    assert "its corner is rounded: at 16 FLOP a byte" in verdict(
        OVER, [kernel(0.1, 1)], traced, GPUS
    )


def test_kernels_right_of_it_or_below_their_roof_are_named() -> None:
    points = [kernel(20, 1.0, "heavy"), kernel(0.125, 0.5)]
    text = verdict(OVER, points, [step(0.25, 0.9)], GPUS)
    assert "bound by memory does not hold here" in text
    assert "heavy float32, has 20, right of it" in text
    assert "below 90%: relu float32 50.0%" in text
    assert "holds at no point measured; the measured ridge is at" in text


def test_torch_at_the_roof_and_in_several_passes_is_told_apart() -> None:
    theirs = [
        {**kernel(0.125, 0.98), "implementation": "torch"},
        {**kernel(0.25, 0.5, "scale_relu"), "implementation": "torch"},
    ]
    points = [kernel(0.125, 0.99), *theirs]
    text = verdict(OVER, points, [], GPUS)
    assert "Torch reaches 90% or more in 1 of 2 cases" in text
    assert "(scale_relu), it gets 50% to 50%." in text
    assert shares(points).rows[0] == {
        "kernel": "relu", "dtype": "float32", "FLOP a byte": "0.125", "ours": 0.99, "torch": 0.98,
    }  # fmt: skip


def test_the_published_ridges_are_traced_to_the_rate_that_gives_them() -> None:
    text = verdict(OVER, [kernel(0.1, 1.0)], [], GPUS)
    assert "7.2 for the P100 SXM2 16 GB, which its fp64 rate gives; fp32 has 14.5" in text
    assert "9.6 for the A100 SXM4 80 GB, which its fp32 rate gives" in text
    wrong: list[Row] = [{**GPUS[0], "ridge published": 3.0}]
    assert "which no rate of its data sheet gives" in verdict(OVER, [], [], wrong)


def test_the_articles_kernels_have_the_intensities_that_they_give() -> None:
    rows = {str(row["kernel"]): row for row in roofline.articles()[1].rows}
    assert rows["(a + b) * c, fp32"]["intensity"] == 0.125
    assert rows["add, fp32"]["intensity"] == pytest.approx(1 / 12)
    assert rows["ReLU, fp32, before"]["of attainable"] == pytest.approx(120 / 900)


def test_a_wrong_number_of_multiply_adds_breaks_the_chain() -> None:
    scope = frame.new_scope("cpu", small=True)
    right, more = (chain(steps, 4096, scope.device) for steps in (8, 16))
    scope.measure(right)
    planted = chain(8, 4096, scope.device)
    object.__setattr__(planted, "launch", more.launch)
    with pytest.raises(RuntimeError, match="no time for fma_chain"):
        scope.measure(planted)


def test_the_reference_of_the_chain_is_the_repeated_step() -> None:
    x = torch.tensor([-3.0, 0.0, 0.5, 7.0])
    expected = x.double()
    for _ in range(16):
        expected = expected * A + B
    found = chain(16, 4, torch.device("cpu")).reference((x,))
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)


def test_a_cpu_puts_every_kernel_on_its_small_roofline() -> None:
    scope = frame.new_scope("cpu", small=False)
    found = roofline.run(scope)
    over, short, points, traced, _, _ = found.sections
    assert len(short.rows) == len(points.rows) / 2
    assert {row["roof"] for row in over.rows} >= {"measured"}
    assert len({row["kernel"] for row in points.rows}) == 7
    assert [row["multiply-adds"] for row in traced.rows] == list(roofline.SMALL_STEPS)
    figure = Figure()
    draw(over.rows, points.rows, traced.rows, GPUS, figure)
    axis, bars = figure.axes
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert len(bars.patches) == len(points.rows)
