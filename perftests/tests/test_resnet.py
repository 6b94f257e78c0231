"""The study of ResNet-50: the model, the bound on its error, and what is made of its figures."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.energy import EnergyError, Power
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.studies import resnet, resnet_loop
from perftests.studies.frame import Scope
from perftests.studies.pictures import picture
from perftests.studies.resnet_arithmetic import Folded, Fused, Stock, prepare
from perftests.studies.resnet_bound import DEVIATIONS, expected
from perftests.studies.resnet_loop import Busy, Load, covered
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
    from collections.abc import Callable, Mapping, Sequence
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
    load = Load(Power(watts, 5.0, 1.0, 10), pace * 1e3 / ms, 0.99)
    seconds = [ms * 1e-3] * 9
    return Measured(name, seconds, 2.0, ms * 1e-3, 0.5, Busy(share * ms * 1e-3, 160), load)


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
        (way, cache) for way in ("stock", "fused", "folded") for cache in ("cold", "iterations")
    ]
    assert findings.draw is not None
    picture(findings.draw, tmp_path / "resnet.png")


def test_a_small_batch_is_held_against_the_bound_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resnet, "busy", lambda _call, _bench: Busy(1e-4, 100))
    monkeypatch.setattr(resnet_loop, "_WITHIN_S", 0.01)
    scope = Scope(Session(Settings(max_seconds=0.02, max_samples=4)), torch.device("cpu"), True)
    problem = Problem(scope, TINY, 2, 32)
    found = resnet._few(scope, problem).rows
    assert [row["way"] for row in found] == ["stock", "fused", "folded"]
    assert all(0 < float(row["worst error of bound"]) < 1 for row in found)
    assert problem.of(6).flop == 3 * problem.flop
    unit = next(problem.model.bottlenecks()).third
    unit.shift = torch.zeros_like(unit.shift)
    rows = resnet._few(scope, problem).rows
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


def test_power_and_pace_are_those_of_the_same_window(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cuda.install(monkeypatch)
    monkeypatch.setattr(resnet_loop, "_WINDOW_S", 0.05)
    monkeypatch.setattr(resnet_loop, "_ASK_S", 0.02)
    calls: list[float] = []

    class Meter:
        absent = None
        refused: Mapping[str, str] = {}

        def ask(self, name: str) -> Any:
            if name == "nvmlDeviceGetUtilizationRates":
                return SimpleNamespace(gpu=97)
            return 1e3 * 400.0 * 0.005 * int(time.perf_counter() / 0.005)  # 400 W in steps

    bench = fake_cuda.bench()
    bench.watch = Meter()

    def call() -> None:
        calls.append(time.perf_counter())
        time.sleep(0.001)

    load = resnet_loop.loaded(call, bench, 0.001)
    assert load.power.watts == pytest.approx(400, rel=0.2)
    pace = (len(calls) - 1) / (calls[-1] - calls[0])
    assert load.per_s == pytest.approx(pace, rel=0.1)
    assert load.utilisation == pytest.approx(0.97)


def test_without_an_energy_counter_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cuda.install(monkeypatch)
    with pytest.raises(EnergyError, match="NVML is absent"):
        resnet_loop.loaded(lambda: None, fake_cuda.bench(), 0.001)


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
    found = [measured("stock", 20.0), measured("fused", best_ms, watts=600.0)]
    told = verdict(rows(found, 64, FLOP, IDLE), [], gpu=True)
    assert told.startswith(said)
    assert "Of the ways with our kernels fused is the fastest" in told
    assert "data sheet of a V100" in told


def test_energy_is_not_told_of_a_device_that_waited_while_it_was_counted() -> None:
    """Idle power would count as the model's: half the pace all but doubles the joules."""
    found = rows([measured("stock", 20.0, pace=0.53), measured("fused", 9.0)], 64, FLOP, IDLE)
    assert [("GFLOP/J" in row, row["power"]) for row in found] == [(False, 500.0), (True, 500.0)]
    told = verdict(found, [], gpu=True)
    assert "Efficiency is not told" in told
    assert "at 53% and 100% of the pace of the iterations alone" in told
    assert "Efficiency goes from" not in told


def test_the_fused_launches_are_told_apart_from_the_host_that_launches_them() -> None:
    eager = replace(measured("fused", 30.0), gpu_s=12e-3)
    told = verdict(rows([measured("stock", 20.0), eager], 64, FLOP, IDLE), [], gpu=True)
    assert "takes the launches from 20 to 12 ms (-40%), but launched one by one" in told
    assert "the fused form takes 30 ms: the host is slower" in told


def test_without_the_stock_model_nothing_is_judged() -> None:
    told = verdict(rows([measured("fused", 9.0)], 64, FLOP, IDLE), [], gpu=True)
    assert told.startswith("Not judged")


def test_power_counts_what_the_board_draws_and_what_it_draws_above_idling() -> None:
    (row,) = rows([measured("stock", 10.0, 0.8)], 64, FLOP, IDLE)
    assert row["GFLOP/J"] == pytest.approx(1e12 * 100 / 500 / 1e9)
    assert row["GFLOP/J above idle"] == pytest.approx(1e12 * 100 / 400 / 1e9)
    assert row["+-"] == pytest.approx(2.0)
    assert row["GPU busy"] == pytest.approx(0.8)
    assert row["images/s"] == pytest.approx(6400)


def test_published_figures_stand_beside_ours_with_what_the_data_sheet_allows() -> None:
    ways = rows([measured("stock", 20.0), measured("fused", 16.0)], 64, FLOP, IDLE)
    found = published_rows(ways, "NVIDIA H200", 700.0)
    assert [row["quantity"] for row in found[:2]] == ["iteration (ms)", "GPU busy (%)"]
    assert found[0]["stock"] == pytest.approx(20)
    assert found[0]["fastest"] == pytest.approx(16)
    assert found[3]["fastest"] == pytest.approx(1.41, abs=0.01)
    assert found[3]["published after"] == pytest.approx(0.417, abs=0.001)
    assert len(published_rows(ways, "Somebody's GPU", 700.0)) == 3


def planted() -> Sequence[Measured]:
    names = ("stock", "fused", "folded", "stock, CUDA graph", "torch.compile")
    times = (14.2, 11.1, 13.0, 13.9, 10.4)
    return [measured(name, ms, 0.93 + 0.01 * i) for i, (name, ms) in enumerate(zip(names, times))]  # noqa: B905


def test_the_picture_shows_power_where_it_was_measured(tmp_path: Path) -> None:
    found = rows(planted(), 64, FLOP, IDLE)
    picture(lambda figure: draw(figure, found), tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 10_000


@pytest.mark.gpu
def test_on_a_gpu_every_way_agrees_with_fp32(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resnet, "ENOUGH_S", 0.0)  # what compiles takes too long for a test
    scope = Scope(Session(Settings(max_seconds=0.05)), torch.device(gpu, 0), True)
    found = resnet.study(scope, Plan((1, 1, 1, 1), 64, 1000), 4, 64).sections[0].rows
    assert [row["way"] for row in found] == ["stock", "fused", "fused, CUDA graph", "folded"]
    assert all(float(row["worst error of bound"]) < 1 for row in found)
