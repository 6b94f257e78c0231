"""The ReLU study: the article's numbers beside ours, with and without Nsight Compute and NVML."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from kernels import host
from perftests.harness.counters import CountersError
from perftests.studies import nsight_relu
from perftests.studies.frame import Scope, missing
from perftests.studies.nsight_relu import facts_of
from perftests.studies.nsight_relu_told import drawing, side_by_side, verdict
from perftests.studies.pictures import picture
from perftests.tests.fake_nvml import FakeNvml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perftests.harness.chain import Outcome
    from perftests.harness.session import Session
    from perftests.studies.tables import Row

CPU = torch.device("cpu")
needs_compiler = pytest.mark.skipif(host.compiler() is None, reason="g++ is not installed")


def outcome(seconds: float, moved: int = 512 << 20) -> Outcome:
    result = {"bytes_moved": moved, "peaks": {"copy_bytes_per_s": 4e12}}
    made: Any = SimpleNamespace(seconds=[seconds] * 3, result=result)
    found: Outcome = made
    return found


def seen(**changes: Any) -> dict[str, Any]:
    return {
        "dram_read_bytes": 2.6e8, "dram_write_bytes": 2.4e8, "warp_efficiency_percent": 100.0,
        "occupancy_percent": 91.0, "registers_per_thread": 18.0, "l2_hit_percent": None,
        **changes,
    }  # fmt: skip


def facts(before_us: float = 200.0, after_us: float = 125.0, **changes: Any) -> dict[str, Row]:
    return {
        "cuda_scalar": facts_of(outcome(before_us * 1e-6), seen(**changes), 4.5e12),
        "cuda_vector": facts_of(outcome(after_us * 1e-6), seen(), 4.5e12),
    }


def test_counted_bytes_are_divided_by_the_trusted_time() -> None:
    found = facts_of(outcome(1e-4), seen(), 10e12)
    assert found["DRAM GB/s"] == pytest.approx(5000)  # 5e8 bytes in 1e-4 s
    assert found["DRAM % of peak"] == pytest.approx(50)
    assert found["DRAM bytes / bytes that had to move"] == pytest.approx(5e8 / (512 << 20))
    assert found["% of a copy"] == pytest.approx(100 * (512 << 20) / 1e-4 / 4e12)
    assert "L2 hit rate %" not in found
    assert "DRAM % of peak" not in facts_of(outcome(1e-4), seen(), None)


def test_without_counters_times_are_left() -> None:
    assert set(facts_of(outcome(1e-4), None, 1e12)) == {
        "time us",
        "GB/s that had to move",
        "% of a copy",
    }


def test_the_articles_numbers_stand_beside_ours() -> None:
    rows = {str(row["metric"]): row for row in side_by_side(facts())}
    warps = rows["warp execution efficiency %"]
    assert warps["article, before"] == 78
    assert warps["article, goal"] == 95
    assert warps["cuda_scalar, before"] == warps["cuda_vector, after"] == 100
    assert rows["DRAM % of peak"]["article, before"] == pytest.approx(13.33, abs=0.01)
    assert "article, before" not in rows["time us"]
    assert "cuda_scalar, before" not in rows["GPU utilisation %"]


def test_the_verdict_where_the_goal_is_reached_and_warps_had_nothing_to_gain() -> None:
    text = verdict(facts(), [], None)  # 5e8 bytes in 125 us are 4 TB/s of 4.5
    assert "1.60 times as fast" in text
    assert "from 56 % to 89 % of the theoretical peak" in text
    assert "the goal is reached; the scalar kernel's share is 4.2 times the article's." in text
    assert "Warp execution efficiency is 100.0 % already in the scalar kernel" in text


def test_the_verdict_where_the_goal_is_missed_and_warps_gain() -> None:
    text = verdict(facts(after_us=180, warp_efficiency_percent=78.0), [], None)
    assert "the goal is not reached; the scalar" in text
    slow = facts(after_us=180)
    slow["cuda_vector"] |= {"% of a copy": 99.0, "DRAM bytes / bytes that had to move": 0.95}
    text = verdict(slow, [], None)
    assert "is not reached, and cannot be, since a copy is no faster here (5% of the bytes" in text
    text = verdict(facts(after_us=180, warp_efficiency_percent=78.0), [], None)
    assert "Warp execution efficiency rises from 78.0 % to 100.0 %" in text


def test_the_verdict_says_what_is_missing() -> None:
    bare = {name: facts_of(outcome(1e-4), None, None) for name in nsight_relu.NAMES}
    text = verdict(bare, [], "Nsight Compute is absent: no `ncu` on PATH")
    assert "no counters here: Nsight Compute is absent: no `ncu` on PATH." in text
    assert "DRAM" not in text
    assert "Warp" not in text


def test_the_verdict_on_utilisation_both_ways() -> None:
    known = facts()
    for name, percent in (("cuda_scalar", 100), ("cuda_vector", 99)):
        known[name]["GPU utilisation %"] = percent
    waited: Row = {"implementation": "cuda_scalar", "MiB": 1, "launches": "waited", "GPU %": 31}
    text = verdict(known, [waited], None)
    assert "does not tell a slow kernel from a fast one" in text
    assert "show 31 %: a low figure is the host's" in text
    known["cuda_scalar"]["GPU utilisation %"] = 62
    assert "does not tell" not in verdict(known, [], None)


@pytest.fixture
def scope(quick_session: Session, monkeypatch: pytest.MonkeyPatch) -> Scope:
    monkeypatch.setattr(
        nsight_relu, "machine_code", lambda _scope: missing("Machine code", "not asked for")
    )
    return Scope(quick_session, CPU, small=True)


@needs_compiler
def test_a_small_run_on_the_cpu_says_what_no_one_counted(
    scope: Scope, validate: Callable[[Any], Any]
) -> None:
    found = nsight_relu.run(scope)
    assert "no counters here: there is no GPU to count on" in found.verdict
    assert "NVML watches a GPU" in str(found.sections[1].rows)
    assert len(scope.kept) == 2
    for kept in scope.kept:
        validate(kept)
        assert kept["result"]["reasons"]["counters"] == "not read: there is no GPU to count on"


@needs_compiler
def test_counters_reach_table_store_and_picture(
    scope: Scope,
    monkeypatch: pytest.MonkeyPatch,
    validate: Callable[[Any], Any],
    tmp_path: Path,
) -> None:
    asked: list[Any] = []

    def counters(study: str, specs: Any) -> Any:
        asked.extend([study, *specs])
        return [seen(kernel_name="relu_scalar"), seen(kernel_name="relu_x1")]

    monkeypatch.setattr(nsight_relu, "counters", counters)
    found = nsight_relu.run(scope)
    assert asked == ["nsight_relu", ("cuda_scalar", 1), ("cuda_vector", 1)]
    assert [k["result"]["counters"]["kernel_name"] for k in scope.kept] == [
        "relu_scalar",
        "relu_x1",
    ]
    for kept in scope.kept:
        validate(kept)
    rows = {row["metric"] for row in found.sections[0].rows}
    assert {"DRAM GB/s", "achieved occupancy %", "registers"} <= rows
    assert found.draw is not None
    picture(found.draw, tmp_path / "n.png")
    assert (tmp_path / "n.png").stat().st_size > 10_000


def test_the_picture_holds_all_metrics(tmp_path: Path) -> None:
    known = facts()
    for row in known.values():
        row |= {"GPU utilisation %": 100, "threads a block": 128}
    picture(drawing(known), tmp_path / "n.png")
    assert (tmp_path / "n.png").stat().st_size > 10_000


def test_a_refused_ncu_is_a_reason(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(study: str, specs: Any) -> Any:
        raise CountersError("the driver forbids performance counters", final=True)

    monkeypatch.setattr(nsight_relu, "counters", refuse)
    monkeypatch.setattr(Scope, "gpu", property(lambda _: True))
    made: Any = SimpleNamespace(result={"reasons": {}})
    assert nsight_relu.counted(scope, {"cuda_scalar": made}) == (
        {},
        "the driver forbids performance counters",
    )
    assert "forbids" in made.result["reasons"]["counters"]


def test_utilisation_is_nvmls_at_the_end_of_a_load(
    quick_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nvml(FakeNvml):
        def answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
            return SimpleNamespace(gpu=37, memory=5)

    launched: list[int] = []
    monkeypatch.setattr(nsight_relu, "_WATCHED_S", 0.01)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    bench = quick_session.bench(CPU)
    monkeypatch.setattr(bench, "watch", SimpleNamespace(ask=lambda _: Nvml().nvmlX()))
    assert nsight_relu._watched(bench, lambda: launched.append(1), 4) == 37
    assert len(launched) >= 4
    assert len(launched) % 4 == 0


def test_machine_code_tells_registers_and_widths(quick_session: Session) -> None:
    from kernels import build, toolkit

    try:
        build.nvrtc_version()
        toolkit.binary("nvdisasm")
        toolkit.binary("cuobjdump")
    except (build.BuildError, FileNotFoundError) as error:
        pytest.skip(str(error))
    before, after = nsight_relu.machine_code(Scope(quick_session, CPU, small=True)).rows
    assert (before["widest load bits"], after["widest load bits"]) == (32, 128)
    assert (before["KiB in flight an SM"], after["KiB in flight an SM"]) == (8, 32)


@pytest.mark.gpu
def test_a_gpu_is_counted_or_says_why(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from perftests.studies.frame import new_scope

    monkeypatch.setattr(nsight_relu, "_WATCHED_S", 0.3)
    scope = new_scope(gpu, small=False)
    found = nsight_relu.run(scope)
    result = scope.kept[0]["result"]
    if result["counters"] is None:
        assert "no counters here" in found.verdict
    else:
        assert 50 < result["counters"]["warp_efficiency_percent"] <= 100
