"""The energy study: trials joined, pairs compared, and its verdict both ways."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from kernels import host
from perftests.studies import energy
from perftests.studies.energy_told import comparisons, drawing, verdict
from perftests.studies.frame import Scope
from perftests.studies.pictures import picture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perftests.harness.session import Session
    from perftests.studies.tables import Row

PAIR = (("relu", "cuda_scalar", "cuda_vector"),)


def trial(per_gb: float, error: float = 0.001) -> dict[str, float | None]:
    return {
        "j_per_gb": per_gb, "j_per_gb_error": error, "gflops_per_w": 1 / per_gb,
        "gflops_per_w_error": error / per_gb**2, "power_w": 500.0, "idle_power_w": 100.0,
        "launches_per_s": 1e4, "window_s": 0.7, "steps": 8,
    }  # fmt: skip


def row(implementation: str, joules: float, error: float, time: float) -> Row:
    return {
        "kernel": "relu", "implementation": implementation, "time": time,
        "energy": joules, "error": error, "with idle": 1.5 * joules, "power": 1e12 * joules,
    }  # fmt: skip


def test_trials_are_joined_by_their_mean_and_the_larger_of_both_errors() -> None:
    alike = energy.joined([trial(0.1, 0.003), trial(0.1, 0.004)])
    assert alike["j_per_gb"] == pytest.approx(0.1)
    assert alike["j_per_gb_error"] == pytest.approx(0.0025)  # sqrt(3^2 + 4^2) / 2
    apart = energy.joined([trial(0.1), trial(0.2)])
    assert apart["j_per_gb"] == pytest.approx(0.15)
    assert apart["j_per_gb_error"] == pytest.approx(0.05)  # 0.0707 / sqrt(2)
    assert apart["trials"] == 2
    assert apart["power_w"] == 500.0


def test_a_trial_in_which_the_device_waited_for_the_host_does_not_count() -> None:
    full, late = {**trial(0.1), "launches_per_s": 9.2e3}, {**trial(0.05), "launches_per_s": 6.6e3}
    load: Any = SimpleNamespace(outcome=SimpleNamespace(seconds=[1e-4]), trials=[late, full, full])
    assert energy.gapless(load) == [full, full]
    load.trials = [late]
    load.reason = None
    energy.take_turns(SimpleNamespace(idle_power=None), [load], -energy.SPARE_ROUNDS)  # type: ignore[arg-type]
    assert load.trials == []
    assert load.reason == "the device waited for the host in every trial"


def test_a_reading_that_a_trial_lacks_is_not_averaged() -> None:
    without = {**trial(0.1), "gflops_per_w": None, "gflops_per_w_error": None}
    assert energy.joined([without, trial(0.1)])["gflops_per_w"] is None


def test_pairs_are_compared_with_their_error() -> None:
    rows = [row("cuda_scalar", 0.2e-9, 0.006e-9, 2e-4), row("cuda_vector", 0.1e-9, 0.004e-9, 1e-4)]
    (found,) = comparisons(rows, PAIR)
    assert found["energy saved"] == pytest.approx(0.5)
    assert found["error"] == pytest.approx(0.5 * 0.05)  # hypot(3 %, 4 %)
    assert found["time saved"] == pytest.approx(0.5)
    assert found["work per watt"] == pytest.approx(2)
    assert found["shown"] is True
    assert "The claim holds: every vector kernel" in verdict([found], "")


def test_a_difference_within_the_error_is_not_shown() -> None:
    rows = [row("cuda_scalar", 0.1e-9, 0.01e-9, 2e-4), row("cuda_vector", 0.09e-9, 0.01e-9, 1e-4)]
    (found,) = comparisons(rows, PAIR)
    assert found["shown"] is False
    text = verdict([found], "")
    assert text.startswith("The claim does not hold")
    assert "within 3 standard errors: not shown" in text


def test_the_verdict_names_the_kernels_for_which_it_holds() -> None:
    rows = [row("cuda_scalar", 0.2e-9, 1e-12, 2e-4), row("cuda_vector", 0.1e-9, 1e-12, 1e-4)]
    (holds,) = comparisons(rows, PAIR)
    other = {**holds, "kernel": "add", "energy saved": -0.161, "work per watt": 0.9}
    text = verdict([holds, other], "torch: no such thing")
    assert text.startswith("The claim holds for relu alone; for add the vector kernel takes more.")
    assert "relu: 50.0% less energy above idle" in text
    assert "add: 16.1% more energy above idle" in text
    assert "at 100 W against 200 W" in text
    assert "0.90 to 2.00 times" in text
    assert text.endswith("Left out: torch: no such thing.")


def test_an_incomplete_pair_is_not_compared() -> None:
    assert comparisons([row("cuda_scalar", 1.0, 0.1, 1.0)], PAIR) == []
    assert verdict([], "no counter") == "Energy was not measured here: no counter."


@pytest.mark.skipif(host.compiler() is None, reason="g++ is not installed")
def test_a_small_run_on_the_cpu_says_why_it_tells_no_energy(
    monkeypatch: pytest.MonkeyPatch, quick_session: Session, validate: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(energy, "PAIRS", PAIR)
    monkeypatch.setattr(energy, "_SMALL_ELEMENTS", 1 << 12)
    scope = Scope(quick_session, torch.device("cpu"), small=True)
    found = energy.run(scope)
    assert found.verdict.startswith("Energy was not measured here: a CPU has no energy counter")
    assert len(found.sections[0].rows) == 2
    assert found.draw is None
    for kept in scope.kept:
        validate(kept)
        assert "a CPU has no energy counter" in kept["result"]["reasons"]["energy"]


@pytest.mark.skipif(host.compiler() is None, reason="g++ is not installed")
def test_energies_of_turns_in_both_orders_reach_table_store_and_picture(
    monkeypatch: pytest.MonkeyPatch,
    quick_session: Session,
    validate: Callable[[Any], Any],
    tmp_path: Path,
) -> None:
    order: list[str] = []
    late: list[str] = ["cuda_vector"]

    def measured(found: Any, bench: Any, launches: Any, median_s: float) -> None:
        launches[0]()
        assert median_s > 0
        assert bench.idle_power is None
        order.append(found.workload.implementation)
        found.energy = trial(0.2 if found.workload.implementation == "cuda_scalar" else 0.1)
        found.energy["launches_per_s"] = 1 / median_s
        if late and late[0] == found.workload.implementation:
            found.energy |= {"launches_per_s": 0.66 / median_s, "j_per_gb": 9.0}
            late.pop()

    monkeypatch.setattr(energy, "measure_energy", measured)
    monkeypatch.setattr(energy, "PAIRS", PAIR)
    monkeypatch.setattr(energy, "_SMALL_ELEMENTS", 1 << 12)
    scope = Scope(quick_session, torch.device("cpu"), small=True)
    loads = [energy.load(scope, "relu", name) for name in PAIR[0][1:]]
    energy.take_turns(quick_session.bench(scope.device), loads, 3)
    scalar, vector = PAIR[0][1:]
    assert order == [scalar, vector, vector, scalar, scalar, vector, vector]  # one made again
    assert [each.trials[0]["j_per_gb"] for each in loads] == [0.2, 0.1]
    assert [len(each.trials) for each in loads] == [3, 3]
    found = energy.run(scope)
    assert "relu: 50.0% less energy above idle" in found.verdict
    for kept in scope.kept[2:]:
        validate(kept)
        assert kept["result"]["energy"]["trials"] == 1
    assert found.draw is not None
    picture(found.draw, tmp_path / "e.png")
    assert (tmp_path / "e.png").stat().st_size > 10_000


def test_the_picture_holds_three_pairs(tmp_path: Path) -> None:
    rows: list[Row] = []
    for kernel, scalar, vector in energy.PAIRS:
        rows += [
            {**row(scalar, 0.15e-9, 0.002e-9, 2e-4), "kernel": kernel},
            {**row(vector, 0.11e-9, 0.001e-9, 1.2e-4), "kernel": kernel},
        ]
    picture(drawing(rows, comparisons(rows, energy.PAIRS)), tmp_path / "e.png")
    assert (tmp_path / "e.png").stat().st_size > 10_000


@pytest.mark.gpu
def test_a_gpu_tells_a_pair_apart_or_says_why(monkeypatch: pytest.MonkeyPatch, gpu: str) -> None:
    from perftests.studies.frame import new_scope

    monkeypatch.setattr(energy, "PAIRS", PAIR)
    monkeypatch.setattr(energy, "TRIALS", 1)
    scope = new_scope(gpu, small=False)
    found = energy.run(scope)
    if len(found.sections) == 1:
        assert found.verdict.startswith("Energy was not measured here")
        return
    assert float(found.sections[1].rows[0]["error"]) < 0.2
