"""A session's benches: the data sheet's rates, the yardsticks of a result, the device by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from perftests.harness.budget import Budget
from perftests.harness.calibrate import Peaks
from perftests.harness.errors import SettingError, UnfitError
from perftests.harness.session import Bench, Session, choose_device
from perftests.harness.settings import Settings
from perftests.harness.state import Watch


def bench(device: Any, budget: Budget | None = None) -> Bench:
    return Bench(device, Settings(), Watch(absent="none"), {}, {}, cast("Any", None), budget=budget)


def gpu(attributes: dict[str, int], **properties: Any) -> Any:
    usual = {"major": 9, "minor": 0, "multi_processor_count": 132}
    return SimpleNamespace(
        kind="cuda", attributes=attributes, properties=SimpleNamespace(**usual | properties)
    )


def test_the_data_sheet_of_an_h200_follows_from_its_attributes() -> None:
    """HBM3e at 3201 MHz on 6144 lines, 4.9 TB/s; 132 multiprocessors at 1980 MHz, 67 TFLOP/s."""
    known = {"MemoryClockRate": 3_201_000, "GlobalMemoryBusWidth": 6144, "ClockRate": 1_980_000}
    found = bench(gpu(known)).theoretical
    assert found.theoretical_bytes_per_s == pytest.approx(4.917e12, rel=1e-3)
    assert found.theoretical_flop_per_s == pytest.approx(66.9e12, rel=1e-3)


def test_what_the_attributes_lack_comes_from_the_properties_or_is_none() -> None:
    bare = bench(gpu({}, memory_clock_rate=3_201_000, memory_bus_width=6144)).theoretical
    assert bare.theoretical_bytes_per_s == pytest.approx(4.917e12, rel=1e-3)
    assert bare.theoretical_flop_per_s is None
    assert bench(gpu({"MemoryClockRate": 1})).theoretical == Peaks()
    assert bench(SimpleNamespace(kind="cpu")).theoretical == Peaks()


def test_each_yardstick_of_a_result_is_that_of_its_size_and_mode() -> None:
    class Yardsticks:
        def copy(self, total: int, mode: str) -> tuple[float, str]:
            return {(4096, "hot"): 3e12}[total, mode], "driver"

        def two_read(self, total: int, mode: str) -> float:
            return {(4096, "hot"): 2e12}[total, mode]

        def floor_s(self, mode: str) -> float:
            return {"hot": 3e-6}[mode]

    known = bench(gpu({"MemoryClockRate": 1000, "GlobalMemoryBusWidth": 8, "ClockRate": 1000}))
    known.__dict__["calibrator"] = Yardsticks()
    assert known.peaks(4096, "hot") == Peaks(2e6, 3e12, "driver", 2e12, 2.0 * 128 * 132 * 1e6, 3e-6)


def test_a_sample_stops_within_its_part_of_the_sessions_budget() -> None:
    cpu = SimpleNamespace(kind="cpu")
    assert bench(cpu).rule().budget_seconds is None
    budget = Budget(10.0, 5)
    assert bench(cpu, budget).rule().budget_seconds == 2.0
    budget.spent(6.0)
    assert bench(cpu, budget).rule().budget_seconds == 1.0


def test_a_device_has_one_bench_a_session() -> None:
    session = Session(Settings(timing=False))
    assert session.bench(torch.device("cpu")) is session.bench(torch.device("cpu"))
    with pytest.raises(UnfitError, match="expected a cpu or cuda device"):
        session.bench(torch.device("meta"))


@pytest.fixture
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: request.param)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("gpus", [2], indirect=True)
@pytest.mark.parametrize(
    ("name", "worker", "device"),
    [
        ("auto", None, "cuda:0"),
        ("auto", 3, "cuda:1"),
        ("cuda", 2, "cuda:0"),
        ("cuda:1", 0, "cuda:1"),
        ("cpu", 1, "cpu"),
    ],
)
def test_workers_take_the_gpus_in_turn(name: str, worker: int | None, device: str) -> None:
    assert choose_device(name, worker) == torch.device(device)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("gpus", [2], indirect=True)
@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("cuda:2", UnfitError, "torch sees 2 GPUs"),
        ("cuda:-1", SettingError, "expected auto, cpu, cuda or cuda:N"),
        ("gpu", SettingError, "expected auto, cpu, cuda or cuda:N"),
    ],
)
def test_a_device_that_is_not_there_is_refused(
    name: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        choose_device(name)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("gpus", [0], indirect=True)
def test_without_a_gpu_auto_is_the_cpu_and_cuda_is_unfit() -> None:
    assert choose_device("auto", 3) == torch.device("cpu")
    with pytest.raises(UnfitError, match="torch sees no GPU"):
        choose_device("cuda")
