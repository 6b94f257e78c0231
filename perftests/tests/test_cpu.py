"""The CPU as a device: its cache, its threads, and a copy that is no slower than what stands beside it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

from perftests.harness import cpu
from perftests.harness.calibrate import Peaks
from perftests.harness.cpu import CpuDevice, cpu_threads, hold_threads, last_level_cache_bytes
from perftests.harness.record import Findings
from perftests.harness.timing import _check_copy
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("text", "count"), [("", 1), ("4", 4), ("3,2", 3), ("0", 1), ("many", 1)])
def test_threads_are_one_unless_the_environment_says_more(
    text: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert cpu_threads() == count


@pytest.mark.usefixtures("_threads")
def test_threads_are_held_and_wait_asleep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    torch.set_num_threads(2)
    hold_threads(1, tmp_path / "absent")
    assert torch.get_num_threads() == 1
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ.pop("OMP_WAIT_POLICY") == "passive"


def test_the_largest_cache_counts(tmp_path: Path) -> None:
    for index, size in enumerate(["48K", "1M", "32M", "2048K"]):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert last_level_cache_bytes(tmp_path) == 32 << 20
    assert last_level_cache_bytes(tmp_path / "absent") is None


def test_a_copy_that_was_held_up_is_left_out_with_a_reason() -> None:
    found = Findings(relu_workload(), "cold", peaks=Peaks(copy_bytes_per_s=1e9, copy_source="x"))
    _check_copy(found, 1.2e9)
    assert found.peaks == Peaks(copy_bytes_per_s=1e9, copy_source="x")
    _check_copy(found, 2.0e9)
    assert found.peaks == replace(Peaks(), copy_bytes_per_s=None)
    assert "held it up" in found.reasons["peaks.copy_bytes_per_s"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """A host clock in nanoseconds that only `clock["ns"]` moves."""
    now = Counter[str]()
    monkeypatch.setattr(cpu, "perf_counter_ns", lambda: now["ns"])
    return now


def test_a_cold_launch_alone_is_timed_after_a_flush(
    clock: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def flush(_device: CpuDevice) -> None:
        said.append("flush")
        clock["ns"] += 10**6

    def launch() -> None:
        said.append("launch")
        clock["ns"] += 1500

    monkeypatch.setattr(CpuDevice, "flush", flush)
    batch = CpuDevice().runner("cold", [launch]).batch(3)
    assert said == ["flush", "launch"] * 3
    assert batch.seconds == [1.5e-6] * 3


@pytest.mark.parametrize(("mode", "sets"), [("hot", 1), ("rotated", 3)])
def test_launches_back_to_back_are_divided_by_their_number(
    mode: str, sets: int, clock: Counter[str]
) -> None:
    launched: Counter[int] = Counter()

    def at(place: int) -> Callable[[], None]:
        def launch() -> None:
            launched[place] += 1
            clock["ns"] += 900 * (place + 1)

        return launch

    runner = CpuDevice().runner(mode, [at(place) for place in range(sets)])
    assert runner.timer == f"host_clock_{mode}"
    launched.clear()
    batch = runner.batch(2)
    assert batch.seconds == pytest.approx([9e-7 * (sets + 1) / 2] * 2)
    took_s = 9e-7 * sets * (sets + 1) / 2
    assert set(launched.values()) == {2 * int(2e-4 / took_s)}
    before = launched.copy()
    runner.rest(1)
    assert launched == before
    runner.once()
    assert launched == Counter({place: count + 1 for place, count in before.items()})


def test_a_flush_reads_and_writes_twice_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "last_level_cache_bytes", lambda: 1 << 20)
    device = CpuDevice()
    for turn in (1, 2):
        device.flush()
        assert {int(value) for part in device._flush_parts for value in set(part)} == {turn}
    assert sum(part.nbytes for part in device._flush_parts) == 2 << 20
    assert device.sets_needed("rotated", 1 << 18) == 22
    assert [device.sets_needed(mode, 1 << 18) for mode in ("cold", "hot")] == [1, 1]


def test_a_cache_that_linux_does_not_name_is_taken_to_be_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpu, "last_level_cache_bytes", lambda: None)
    assert CpuDevice().cache_bytes == 32 << 20
