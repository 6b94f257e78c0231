"""The study of ResNet-50: the model, the bound on its error, and what is made of its figures."""

from __future__ import annotations

import copy
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.energy import Power
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.studies import resnet, resnet_energy, resnet_loop
from perftests.studies.counter import Load
from perftests.studies.frame import Scope
from perftests.studies.pictures import picture
from perftests.studies.resnet_arithmetic import Folded, Fused, Stock, prepare
from perftests.studies.resnet_bound import DEVIATIONS, expected
from perftests.studies.resnet_loop import Busy, covered
from perftests.studies.resnet_model import RESNET50, Plan, ResNet, build, macs
from perftests.studies.resnet_problem import Problem
from perftests.studies.resnet_report import (
    Measured,
    draw,
    published_rows,
    rows,
    told_few,
    verdict,
)
from perftests.tests import fake_cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TINY = Plan((2, 1), 16, 100)
IDLE = Power(100.0, 1.0, 1.0, 10)
FLOP = 10**12


@pytest.fixture(scope="module")
def models() -> tuple[ResNet, ResNet]:
    """A tiny network in fp32 and the same in fp16, ready for every arithmetic."""
    exact = build(TINY, 7)
    half = copy.deepcopy(exact).half()
    half.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    prepare(half)
    return exact, half


def images(count: int = 4, size: int = 32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    shape = (count, size, size, 3)
    return torch.randn(shape, generator=generator).half().permute(0, 3, 1, 2)


def deviations(exact: ResNet, logits: torch.Tensor, *, folded: bool = False) -> torch.Tensor:
    """Return the errors in predicted standard deviations."""
    found = expected(exact, images(), folded=folded)
    return (logits.float() - found.value) / found.variance.sqrt()


def measured(
    name: str, ms: float, share: float = 0.9, watts: float = 500.0, pace: float = 1.0
) -> Measured:
    """A way whose iterations take `ms`, and 1 % of error in the joules of its window."""
    per_s = pace * 1e3 / ms
    load = Load(Power(watts, 5.0, 2.0, 20), watts / per_s, watts / per_s / 100, per_s, 0.99)
    seconds = [ms * 1e-3] * 9
    return Measured(name, seconds, 2.0, ms * 1e-3, 0.5, Busy(share * ms * 1e-3, 160), load)


def judged(found: Sequence[Measured], idle: Power | None = IDLE) -> str:
    ways, energies = rows(found, 64, FLOP), resnet_energy.rows(found, 64, FLOP, idle)
    return verdict(ways, energies, [], gpu=True)


def test_the_network_is_resnet_50() -> None:
    # 4.09 GMAC and 25.6 million parameters, as torchvision documents its resnet50.
    assert macs(RESNET50, 224) == 4_089_184_256
    with torch.device("meta"):
        model = ResNet(RESNET50)
    assert sum(each.numel() for each in model.parameters()) == 25_557_032
    assert len(list(model.units())) == 53


def test_a_seed_gives_one_network_whose_values_fp16_holds() -> None:
    first, second, other = build(TINY, 1), build(TINY, 1), build(TINY, 2)
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name])
        assert torch.equal(value, value.half().to(value.dtype))
    assert not torch.equal(first.linear.weight, other.linear.weight)


def test_in_fp32_every_arithmetic_gives_the_same_logits() -> None:
    """Apart from roundings: the fused and folded forms are the network, term for term."""
    model = build(TINY, 7)
    prepare(model)
    x = images().float()
    with torch.no_grad():
        stock, fused, folded = (model(a, x) for a in (Stock(), Fused(), Folded()))
    assert torch.allclose(fused, stock, atol=1e-4)
    assert torch.allclose(folded, stock, atol=1e-4)


@pytest.mark.parametrize(
    "arithmetic", [Stock(), Fused(), Folded()], ids=["stock", "fused", "folded"]
)
def test_fp16_errs_as_its_roundings_predict(
    models: tuple[ResNet, ResNet], arithmetic: Stock
) -> None:
    exact, half = models
    with torch.no_grad():
        error = deviations(exact, half(arithmetic, images()), folded=arithmetic.__class__ is Folded)
    assert float(error.abs().max()) < DEVIATIONS
    assert 0.2 < float(error.square().mean().sqrt()) < 1.5


def test_a_batch_norm_left_out_is_far_outside_the_bound(models: tuple[ResNet, ResNet]) -> None:
    exact, half = models
    wrong = copy.deepcopy(half)
    unit = next(wrong.bottlenecks()).third
    unit.shift = torch.zeros_like(unit.shift)
    with torch.no_grad():
        error = deviations(exact, wrong(Fused(), images()))
    assert float(error.abs().max()) > 2 * DEVIATIONS


def test_a_residual_left_out_is_far_outside_the_bound(models: tuple[ResNet, ResNet]) -> None:
    class Forgetful(Stock):
        def bn_add_relu(self, unit: Any, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
            return self.bn_relu(unit, x)

    with torch.no_grad():
        error = deviations(models[0], models[1](Forgetful(), images()))
    assert float(error.abs().max()) > 2 * DEVIATIONS


@pytest.mark.slow
def test_the_fused_kernels_pass_through_torch_compile_in_one_graph(
    models: tuple[ResNet, ResNet],
) -> None:
    exact, half = models
    call = torch.compile(half, dynamic=False, fullgraph=True)
    with torch.no_grad():
        assert float(deviations(exact, call(Fused(), images())).abs().max()) < DEVIATIONS


def test_on_a_cpu_the_study_runs_small_says_so_and_keeps_every_way(
    monkeypatch: pytest.MonkeyPatch, validate: Callable[[Any], Any], tmp_path: Path
) -> None:
    monkeypatch.setattr(resnet_loop, "_WITHIN_S", 0.01)
    scope = Scope(
        Session(Settings(max_seconds=0.02, max_samples=4, lock_seconds=30)),
        torch.device("cpu"),
        True,
    )
    findings = resnet.study(scope, TINY, 2, 32)
    assert findings.verdict.startswith("There is no GPU here")
    assert [row["way"] for row in findings.sections[0].rows] == ["stock", "fused", "folded"]
    assert all(0 < float(row["worst error of bound"]) < 1 for row in findings.sections[0].rows)
    cases = [validate(each)["result"]["case"] for each in scope.kept]
    assert [(case["implementation"], case["cache"]) for case in cases] == [
        (way, cache) for cache in ("cold", "iterations") for way in ("stock", "fused", "folded")
    ]
    assert findings.draw is not None
    picture(findings.draw, tmp_path / "resnet.png")


def test_a_small_batch_is_held_against_the_bound_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resnet_loop, "_WITHIN_S", 0.01)
    scope = Scope(Session(Settings(max_seconds=0.02, max_samples=4)), torch.device("cpu"), True)
    problem = Problem(scope, TINY, 2, 32)

    def few() -> list[Any]:
        ran = [each.measured for each in resnet._few(scope, problem)]
        return resnet._few_rows([replace(m, busy=Busy(1e-4, 100)) for m in ran], 10**9)

    found = few()
    assert [row["way"] for row in found] == ["stock", "fused", "folded"]
    assert all(0 < float(row["worst error of bound"]) < 1 for row in found)
    assert problem.of(6).flop == 3 * problem.flop
    unit = next(problem.model.bottlenecks()).third
    unit.shift = torch.zeros_like(unit.shift)
    rows = few()
    assert [row["way"] for row in rows if "iteration" in row] == ["stock", "folded"]
    assert "of the bound" in str(rows[-1]["not measured"])
    told = told_few(found, 4)
    assert "With 4 images a kernel runs in" in told


def test_a_way_that_fails_loses_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def lame(model: ResNet, *, gpu: bool) -> tuple[resnet.Way, ...]:
        def broken(_images: torch.Tensor) -> Any:
            raise ValueError("no such operator")

        stock = resnet.Way("stock", lambda _images: lambda x: model(Stock(), x))
        return stock, resnet.Way("broken", broken)

    monkeypatch.setattr(resnet, "ways", lame)
    monkeypatch.setattr(resnet_loop, "_WITHIN_S", 0.01)
    scope = Scope(Session(Settings(max_seconds=0.02, max_samples=4)), torch.device("cpu"), True)
    findings = resnet.study(scope, TINY, 1, 32)
    assert len(findings.sections[0].rows) == 1
    assert "broken was not measured: ValueError: no such operator." in findings.verdict


def test_iterations_on_a_device_are_timed_between_events(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cuda.install(monkeypatch)
    monkeypatch.setattr(resnet_loop, "_WITHIN_S", 0.0)
    found = resnet_loop.iteration_times(lambda: time.sleep(0.001), fake_cuda.bench())
    assert len(found) == 20
    assert all(0.001 <= seconds < 0.1 for seconds in found)


def test_what_overlaps_is_busy_once() -> None:
    assert covered([(5, 6), (0, 2), (1, 3), (1, 2)]) == 4
    assert covered([]) == 0


@pytest.mark.parametrize(
    ("best_ms", "said"),
    [
        (10.0, "The claim holds here."),
        (18.0, "The claim holds in part here."),
        (25.0, "The claim does not hold here. No way is faster"),
    ],
)
def test_the_verdict_follows_the_time_that_is_saved(best_ms: float, said: str) -> None:
    told = judged([measured("stock", 20.0), measured("fused", best_ms, watts=600.0)])
    assert told.startswith(said)
    assert "Of the ways with our kernels fused is the fastest" in told
    assert "data sheet of a V100" in told


def test_efficiency_is_told_with_its_errors_of_the_board_and_above_idle() -> None:
    told = judged([measured("stock", 20.0), measured("fused", 10.0, watts=600.0)])
    # stock 1e12 / (500 W * 20 ms), above idle 1e12 / (400 W * 20 ms); fused 600 and 500 W, 10 ms
    assert (
        "Efficiency of the whole board goes from 100 ± 1 to 167 ± 2 GFLOP/s a watt (+67% ± 2%), "
        "above idle from 125 ± 2 to 200 ± 2 GFLOP/s a watt (+60% ± 3%); published +50 %."
    ) in told
    assert "while joules were counted" not in told
    assert told.startswith("The claim holds here.")
    told = judged([measured("stock", 20.0), measured("fused", 10.0, watts=700.0)])
    assert told.startswith("The claim holds in part here: in time, not in efficiency.")


def test_another_pace_of_the_window_is_told_and_its_efficiency_all_the_same() -> None:
    found = [measured("stock", 20.0, pace=0.8), measured("fused", 9.0)]
    stock, fused = resnet_energy.rows(found, 64, FLOP, IDLE)
    assert stock["images/s timed"] == pytest.approx(3200)
    assert stock["images/s in the window"] == pytest.approx(2560)
    assert stock["GFLOP/J"] == pytest.approx(1e12 / (500 * 0.025) / 1e9)
    # above idle 400 W for 25 ms, and the idle board for the 20 ms that it took when timed
    assert stock["GFLOP/J at the timed pace"] == pytest.approx(1e12 / (10 + 2) / 1e9)
    assert "another than when timed" in str(stock["note"])
    assert "note" not in fused
    told = judged(found)
    assert "while joules were counted the pace was, of the timed one, stock 80%." in told
    assert "at the timed one the board would have 83 (stock)." in told
    assert "Efficiency of the whole board goes from 80 ± 1" in told


def test_a_way_whose_joules_were_not_counted_says_why_and_keeps_its_times() -> None:
    found = [
        replace(measured("stock", 20.0), load=None, no_load="no permission"),
        measured("fused", 9.0),
    ]
    ways = rows(found, 64, FLOP)
    assert ways[0]["energy"] == "not measured: no permission"
    assert [row["way"] for row in resnet_energy.rows(found, 64, FLOP, IDLE)] == ["fused"]
    assert "Efficiency of" not in judged(found)
    assert resnet_energy.as_record(found[0], FLOP, IDLE) is None


def test_the_store_keeps_efficiency_above_idle_as_of_every_kernel_and_the_boards_beside_it() -> (
    None
):
    record = resnet_energy.as_record(measured("stock", 20.0), FLOP, IDLE)
    assert record is not None
    assert record["gflops_per_w"] == pytest.approx(125)
    assert record["gflops_per_w_board"] == pytest.approx(100)
    assert record["gflops_per_w_board_error"] == pytest.approx(1)
    assert (record["power_w"], record["idle_power_w"]) == (500.0, 100.0)
    alone = resnet_energy.as_record(measured("stock", 20.0), FLOP, None)
    assert alone is not None
    assert alone["gflops_per_w"] is None


def test_the_profiler_comes_after_all_that_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves CUPTI behind, with which launches are slower."""
    seen: list[Any] = []

    def profiled(call: Callable[[], object], _bench: Any) -> Busy:
        seen.append(call)
        return Busy(1.0, 2.0)

    monkeypatch.setattr(resnet, "busy", profiled)
    bench = fake_cuda.bench()
    monkeypatch.setattr(resnet, "_on", lambda _bench: nullcontext())
    ran = [resnet.Ran(Measured("a", [1.0]), print), resnet.Ran(Measured("b", why="no"))]
    assert [each.busy for each in resnet._seen_busy(bench, ran)] == [Busy(1.0, 2.0), None]
    assert seen == [print]


def test_the_fused_launches_are_told_apart_from_the_host_that_launches_them() -> None:
    eager = replace(measured("fused", 30.0), gpu_s=12e-3)
    told = judged([measured("stock", 20.0), eager])
    assert "takes the launches from 20 to 12 ms (-40%), but launched one by one" in told
    assert "the fused form takes 30 ms: the host is slower" in told


def test_without_the_stock_model_nothing_is_judged() -> None:
    assert judged([measured("fused", 9.0)]).startswith("Not judged")


def test_power_counts_what_the_board_draws_and_what_it_draws_above_idling() -> None:
    found = [measured("stock", 10.0, 0.8)]
    (row,) = resnet_energy.rows(found, 64, FLOP, IDLE)
    assert row["GFLOP/J"] == pytest.approx(1e12 * 100 / 500 / 1e9)
    assert row["GFLOP/J above idle"] == pytest.approx(1e12 * 100 / 400 / 1e9)
    assert row["+-"] == pytest.approx(2.0)
    # 1 % of 5 J and 1 W of idle for 10 ms, of 4 J
    assert row["+- above idle"] == pytest.approx(250 * (0.05**2 + 0.01**2) ** 0.5 / 4)
    (way,) = rows(found, 64, FLOP)
    assert way["GPU busy"] == pytest.approx(0.8)
    assert way["images/s"] == pytest.approx(6400)


def test_published_figures_stand_beside_ours_with_what_the_data_sheet_allows() -> None:
    ran = [measured("stock", 20.0), measured("fused", 16.0)]
    ways, energies = rows(ran, 64, FLOP), resnet_energy.rows(ran, 64, FLOP, IDLE)
    found = published_rows(ways, energies, "NVIDIA H200", 700.0)
    assert [row["quantity"] for row in found[:2]] == ["iteration (ms)", "GPU busy (%)"]
    assert found[0]["stock"] == pytest.approx(20)
    assert found[0]["fastest"] == pytest.approx(16)
    assert found[2]["stock"] == pytest.approx(0.1)
    assert found[3]["fastest"] == pytest.approx(1e12 / (400 * 0.016) / 1e12)
    assert found[4]["fastest"] == pytest.approx(1.41, abs=0.01)
    assert found[4]["published after"] == pytest.approx(0.417, abs=0.001)
    assert len(published_rows(ways, energies, "Somebody's GPU", 700.0)) == 4


def planted() -> Sequence[Measured]:
    names = ("stock", "fused", "folded", "stock, CUDA graph", "torch.compile")
    times = (14.2, 11.1, 13.0, 13.9, 10.4)
    return [measured(name, ms, 0.93 + 0.01 * i) for i, (name, ms) in enumerate(zip(names, times))]  # noqa: B905


def test_the_picture_shows_power_where_it_was_measured(tmp_path: Path) -> None:
    found, energies = rows(planted(), 64, FLOP), resnet_energy.rows(planted(), 64, FLOP, IDLE)
    picture(lambda figure: draw(figure, found, energies), tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 10_000


@pytest.mark.gpu
def test_on_a_gpu_every_way_agrees_with_fp32(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resnet, "ENOUGH_S", 0.0)  # what compiles takes too long for a test
    scope = Scope(Session(Settings(max_seconds=0.05)), torch.device(gpu, 0), True)
    found = resnet.study(scope, Plan((1, 1, 1, 1), 64, 1000), 4, 64).sections[0].rows
    assert [row["way"] for row in found] == ["stock", "fused", "fused, CUDA graph", "folded"]
    assert all(float(row["worst error of bound"]) < 1 for row in found)
